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
    two_layers_delay,
    two_layers_model,
    two_layers_overhead,
    two_layers_split,
)

EXPERIMENTS: dict[str, ModuleType] = {
    # 000
    "several_sequencers": several_sequencers,
    "contexts": contexts,
    "senders": senders,
    "bodies": bodies,
    "migration": migration,
    # 001
    "packets": packets,
    # 002
    "two_layers_delay": two_layers_delay,
    "two_layers_model": two_layers_model,
    "two_layers_split": two_layers_split,
    "two_layers_overhead": two_layers_overhead,
    # 003
    "resending": resending,
    "prefix": prefix,
    # 004
    "causal_blocks": causal_blocks,
    "header_saving": header_saving,
    "needless_waiting": needless_waiting,
    # none of them
    "price_list": price_list,
}
