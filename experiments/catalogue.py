"""All experiments, in the order of docs/RESULTS.md. A new one is one more line here."""

from __future__ import annotations

from experiments import (
    apart,
    bodies,
    causal_blocks,
    causal_by_waiting,
    context_bytes,
    contexts,
    false_order,
    few_senders,
    header_saving,
    large_groups,
    latency,
    load,
    loss,
    lost_suffix,
    migration,
    needless_waiting,
    negative,
    orders,
    own_groups,
    packets,
    prefix,
    price_list,
    resending,
    senders,
    several_sequencers,
    silence,
    single_members,
    two_layers_delay,
    two_layers_model,
    two_layers_overhead,
    two_layers_split,
)
from experiments.claims import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    # 000
    "load": load,
    "several_sequencers": several_sequencers,
    "apart": apart,
    "contexts": contexts,
    "context_bytes": context_bytes,
    "senders": senders,
    "causal_by_waiting": causal_by_waiting,
    "few_senders": few_senders,
    "bodies": bodies,
    "latency": latency,
    "loss": loss,
    "migration": migration,
    # 001
    "packets": packets,
    "negative": negative,
    "orders": orders,
    # 002
    "two_layers_delay": two_layers_delay,
    "two_layers_model": two_layers_model,
    "two_layers_split": two_layers_split,
    "two_layers_overhead": two_layers_overhead,
    "large_groups": large_groups,
    "false_order": false_order,
    # 003
    "resending": resending,
    "lost_suffix": lost_suffix,
    "prefix": prefix,
    # 004
    "causal_blocks": causal_blocks,
    "silence": silence,
    "header_saving": header_saving,
    "needless_waiting": needless_waiting,
    "single_members": single_members,
    "own_groups": own_groups,
    # none of them
    "price_list": price_list,
}
