"""All protocols by name, and the one an order gets by default."""

from __future__ import annotations

from ordercast.core.declaration import ORDERS
from ordercast.core.protocol import OrderingProtocol
from ordercast.protocols.agreed import AgreedOrder
from ordercast.protocols.basic import Basic
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.fast import Fast
from ordercast.protocols.fast_p import FastP
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.global_fifo import GlobalFifo
from ordercast.protocols.javagroups import JavaGroupsTotal
from ordercast.protocols.nak import NakMulticast
from ordercast.protocols.relative import Relative
from ordercast.protocols.reliable import Reliable
from ordercast.protocols.sequencer_bb import SequencerBB
from ordercast.protocols.sequencer_pb import SequencerPB
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.slow import Slow
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.protocols.uniform import Uniform
from ordercast.protocols.vector import CausalVector

PROTOCOLS: dict[str, type[OrderingProtocol]] = {
    protocol.declaration.name: protocol
    for protocol in (
        Basic,
        Reliable,
        Uniform,
        NakMulticast,
        Fifo,
        GlobalFifo,
        CausalVector,
        TwoLayered,
        Cbcast,
        Slow,
        Fast,
        FastP,
        Relative,
        SequencerPB,
        SequencerBB,
        JavaGroupsTotal,
        AgreedOrder,
        BlockTotal,
        Sequencing,
        SequencingHybrid,
        SequencingCausal,
        SequencingGlobal,
    )
}

DEFAULTS: dict[str, str] = {
    "none": "reliable",
    "fifo": "global_fifo",
    "causal": "cbcast",
    "total": "sequencing",
    "hybrid": "sequencing_hybrid",
    "causal-total": "block_total",
    "global-total": "block_total",
}


SERVICE: dict[str | None, str] = {
    page.declaration.order: name for name, page in PROTOCOLS.items() if page.together is not None
}  # "sequencing" stands for all four orders of the sequencing service


def choose(order: str | None, protocol: str | None) -> type[OrderingProtocol]:
    """The protocol for an order, or the named one; a `ValueError` lists what there is."""
    if protocol == "sequencing":
        protocol = SERVICE.get(order, protocol)
    if protocol is not None and protocol not in PROTOCOLS:
        raise ValueError(f"unknown protocol {protocol!r}; built are {', '.join(PROTOCOLS)}")
    if order is None:
        if protocol is None:
            raise ValueError(f"say which order the group needs: one of {', '.join(DEFAULTS)}")
        return PROTOCOLS[protocol]
    if order not in DEFAULTS:
        what = "is not built yet" if order in ORDERS else "is unknown"
        raise ValueError(f"the order {order!r} {what}; built are {', '.join(DEFAULTS)}")
    chosen = PROTOCOLS[protocol or DEFAULTS[order]]
    if order not in chosen.declaration.orders:
        fitting = [n for n, p in PROTOCOLS.items() if order in p.declaration.orders]
        given = " and ".join(map(repr, chosen.declaration.orders))
        raise ValueError(
            f"protocol {protocol!r} gives {given}, not {order!r}; "
            f"for {order!r} there is {', '.join(fitting)}"
        )
    return chosen


def across_groups(order: str) -> list[str]:
    """The protocols that keep an order across groups, too."""
    declared = (protocol.declaration for protocol in PROTOCOLS.values())
    return [d.name for d in declared if order in d.orders and d.scope == "domain"]
