"""All experiments, in the order of docs/RESULTS.md. A new one is one more line here."""

from __future__ import annotations

from types import ModuleType

from experiments import (
    bodies,
    contexts,
    migration,
    packets,
    price_list,
    senders,
    several_sequencers,
)

EXPERIMENTS: dict[str, ModuleType] = {
    "several_sequencers": several_sequencers,
    "contexts": contexts,
    "senders": senders,
    "bodies": bodies,
    "migration": migration,
    "packets": packets,
    "price_list": price_list,
}
