"""Checks what a seed says about nodes and addresses, before anything is done with it.

A node that joins has no view with which it could compare what it is told. But names, numbers and
addresses have a form, and it knows what it asked for: an answer that cannot be right is the fault
of the node that gave it (`PeerError`), and has no effect.
"""

from __future__ import annotations

from ordercast.core.ids import check_name
from ordercast.core.numbers import MAX_COUNT
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.control import Admitted
from ordercast.views.plausible import bounded, pids
from ordercast.wire.control import Hello


def check_redirect(leader: str, seed: Hello) -> None:
    """A redirect must name an address, and not that of its sender."""
    _check_address("the coordinator", leader)
    if leader == seed.advertise:
        raise PeerError("it named its own address as the one to ask instead")


def check_admitted(answer: Admitted, mine: Hello, after: int) -> None:
    """The answer is for this node, in a later incarnation, and names nodes that can be."""
    me = answer.me
    if (me.name, me.address) != (mine.name, mine.advertise):
        raise PeerError("it let in another node than the one that had asked")
    bounded("my incarnation", me.incarnation, after + 1)
    pids("node", (me.pid, *(node.pid for node in answer.nodes)))
    for node in answer.nodes:
        check_entry(node)
    if answer.leader not in {node.pid for node in answer.nodes}:
        raise PeerError("it let this node in without naming the coordinator")
    _check_name("run", answer.run)
    for name, incarnation in answer.past:
        _check_name("node", name)
        bounded("incarnation", incarnation, 0)
    bounded("incarnation", answer.floor, 0)


def check_entry(node: NodeEntry) -> None:
    """It has a number, a name and an address."""
    pids("node", (node.pid,))
    _check_name("node", node.name)
    bounded("incarnation", node.incarnation, 1, MAX_COUNT)
    _check_address(f"node {node.name!r}", node.address)
    if node.site:
        _check_name("site", node.site)


def _check_name(what: str, name: str) -> None:
    try:
        check_name(what, name)
    except ValueError as reason:
        raise PeerError(str(reason)) from None


def _check_address(what: str, address: str) -> None:
    try:
        parse_address(what, address)
    except ValueError as reason:
        raise PeerError(str(reason)) from None
