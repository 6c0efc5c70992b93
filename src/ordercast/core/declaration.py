"""What a protocol says of itself.

The tables in the docs and the command `ordercast protocols` are made from this.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Order = Literal["none", "fifo", "causal", "total", "hybrid", "causal-total", "global-total"]
Scope = Literal["group", "domain"]
Network = Literal["N0", "N1", "N2f", "N2"]

ORDERS: tuple[Order, ...] = (
    "none", "fifo", "causal", "total", "hybrid", "causal-total", "global-total",
)  # fmt: skip

NETWORKS: dict[Network, str] = {
    "N0": "lossy, duplicating, reordering",
    "N1": "reliable, reordering, may duplicate",
    "N2f": "reliable, first-in first-out for each pair of processes in each group",
    "N2": "reliable, first-in first-out for each pair of processes",
}

STRENGTH: dict[Network, int] = {network: rank for rank, network in enumerate(NETWORKS)}


LETTERS: dict[str, str] = {
    "n": "members of the group",
    "c": "entries that changed since the sender's last frame in the group",
    "k": "other groups that the frame comes after",
    "m": "subgroups of a two-layered group, and members of one, together",
}  # of the formulas below


class Declaration(msgspec.Struct, frozen=True):
    """One row of the protocol table."""

    name: str
    order: Order
    scope: Scope
    network: Network  # the weakest network it works on by itself
    header: str  # integers in the header of a frame, as a formula (LETTERS)
    packets: str  # packets per frame in a closed group of n, as a formula
    control: str  # ... and small ones besides, when frames come one by one; fewer when they stream
    exact: bool  # does a message wait only for a message it really depends on?
    silence: str  # what must be said when nobody has anything to say
    source: str  # document and section
    promises: tuple[str, ...]  # property names of the trace verifier, without crashes
    crash: str  # what a crash does, in one sentence
    sequenced: bool = False  # one process numbers the frames
    also: tuple[Order, ...] = ()  # further orders that it gives
    everyone_speaks: bool = False  # a member that says nothing holds the others up
    closed: str = ""  # why nobody but members may send to such a group; empty: anybody may

    @property
    def orders(self) -> tuple[Order, ...]:
        """Every order it may be chosen for."""
        return (self.order, *self.also)
