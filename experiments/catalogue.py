"""All experiments, in the order of docs/RESULTS.md. A new one is one more line here."""

from __future__ import annotations

from types import ModuleType

from experiments import packets, price_list

EXPERIMENTS: dict[str, ModuleType] = {
    "packets": packets,
    "price_list": price_list,
}
