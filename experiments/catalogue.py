"""All experiments, in the order of docs/RESULTS.md. A new one is one more line here."""

from __future__ import annotations

from types import ModuleType

from experiments import (
    bodies,
    causal_blocks,
    contexts,
    header_saving,
    migration,
    needless_waiting,
    packets,
    prefix,
    price_list,
    resending,
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
    "causal_blocks": causal_blocks,
    "header_saving": header_saving,
    "needless_waiting": needless_waiting,
    "resending": resending,
    "prefix": prefix,
}
