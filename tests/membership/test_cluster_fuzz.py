"""Nonsense in every packet of the cluster: a fault of its sender, never an exception here."""

from __future__ import annotations

import types
import typing
from random import Random
from typing import Any

import msgspec
import pytest

from ordercast.core.events import Multicast, Receive, Timer
from ordercast.core.ids import ProcessId
from ordercast.errors import FrameError
from ordercast.membership.agreement import ClusterOptions, Policy
from ordercast.membership.node_view import NodeEntry
from ordercast.process.commands import Broken, Connected, Found, Join, Seek
from ordercast.process.headers import CLUSTER_HEADERS
from ordercast.process.process import CLUSTER_GROUP, Process
from ordercast.protocols.registry import PROTOCOLS
from ordercast.views.groups import GroupEntry
from ordercast.wire.codec import ChannelCodec

RUNS = 40  # of each batch
BATCHES = 6
NODES = 4
STRANGER = 9
NUMBERS = (-2, -1, 0, 1, 2, 3, 4, 5, 9, 256, 261, 1 << 20, 1 << 40, 1 << 62)
CODEC = ChannelCodec(CLUSTER_HEADERS)
TEXTS = ("fifo", "n1", "agreed", "sequencer_pb", "nonsense", "")


class Town:
    """A cluster with one group, in which somebody has just died, or nobody."""

    def __init__(self, rng: Random) -> None:
        policy: Policy = rng.choice(("primary", "merge"))
        options = ClusterOptions(heartbeat_ms=20, suspect_ms=100, partition=policy)
        self.nodes = {
            p: Process(NodeEntry(p, f"n{p}", 1), PROTOCOLS, cluster_options=options)
            for p in range(NODES)
        }
        self.flight: list[tuple[ProcessId, Receive]] = []
        self.step(0, Found())
        for p in self.nodes:
            for q in self.nodes:
                if q != p:
                    self.step(p, Connected(q, f"n{q}"))
        for p in range(1, NODES):
            self.step(p, Seek((0,)))
            self.carry()
        assert all(len(node.pids) == NODES for node in self.nodes.values())
        protocol = rng.choice(sorted(PROTOCOLS))
        group = GroupEntry(1, "g", "order", protocol, 0)
        for p in self.nodes:
            self.step(p, Join(group, "member"))
        self.carry()
        assert all(node.is_in(1) for node in self.nodes.values())
        for p in self.nodes:
            self.step(p, Multicast(1, b"m"))
        if rng.random() < 0.8:
            self.kill(rng.choice((0, NODES - 1)))
        self.carry(rng.randrange(40))

    def kill(self, dead: ProcessId) -> None:
        del self.nodes[dead]
        for p in self.nodes:
            self.step(p, Broken(dead))

    def step(self, p: ProcessId, event: Any) -> None:
        out = self.nodes[p].step([event])
        for to, group, era, header, payload in out.transmits:
            packet = Receive(p, group, era, header, payload)
            self.flight += [(q, packet) for q in to]

    def carry(self, packets: int = 3000) -> None:
        for _ in range(packets):
            if not self.flight:
                return
            p, packet = self.flight.pop(0)
            if p in self.nodes:
                self.step(p, packet)


def nonsense(kind: Any, rng: Random) -> Any:
    """Any value of this type, as the wire would let it through."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return nonsense(rng.choice(arguments), rng)
    if origin is typing.Literal:
        return rng.choice(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return tuple(nonsense(arguments[0], rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    if origin is tuple:
        return tuple(nonsense(argument, rng) for argument in arguments)
    if kind is int:
        return rng.choice(NUMBERS)
    if kind is bool:
        return rng.random() < 0.5
    if kind is str:
        return rng.choice(TEXTS)
    if kind is type(None):
        return None
    hints = typing.get_type_hints(kind)
    return kind(*(nonsense(hints[field], rng) for field in kind.__struct_fields__))


def travels(header: msgspec.Struct) -> bool:
    """Would the wire let it through?"""
    tag, raw = CODEC.encode_header(header)
    try:
        CODEC.decode(tag, raw)
    except FrameError:
        return False
    return True


def spoilt(value: Any, rng: Random) -> Any:
    """The same with one part that makes no sense."""
    if isinstance(value, msgspec.Struct) and value.__struct_fields__:
        field = rng.choice(value.__struct_fields__)
        part = getattr(value, field)
        deeper = part != () and isinstance(part, tuple | msgspec.Struct) and rng.random() < 0.6
        kind = typing.get_type_hints(type(value))[field]
        new = spoilt(part, rng) if deeper else nonsense(kind, rng)
        return msgspec.structs.replace(value, **{field: new})
    if isinstance(value, tuple) and value:
        i = rng.randrange(len(value))
        middle = rng.choice(((), (value[i], value[i]), (spoilt(value[i], rng),)))
        return (*value[:i], *middle, *value[i + 1 :])
    return rng.choice(NUMBERS) if isinstance(value, int) else value


def made_timely(node: Process, header: Any, rng: Random) -> Any:
    """The same for the view, the term and the attempt of this node, mostly: else it is dropped."""
    view = node.node_view
    if view is None or rng.random() < 0.2:
        return header
    timely = {
        "view": view.id,
        "ballot": node.agreement.promised,
        "term": node.changes.term,
        "attempt": node.changes.attempt,
    }
    fields = {name: timely[name] for name in header.__struct_fields__ if name in timely}
    return msgspec.structs.replace(header, **fields)


def harass(town: Town, rng: Random) -> None:
    """One packet arrives as it is, or spoilt, or one that was never sent; or time passes."""
    p = rng.choice(sorted(town.nodes))
    what = rng.random()
    if what < 0.1:
        town.step(p, Timer(CLUSTER_GROUP, "tick"))
    elif what < 0.4:
        town.carry(1)
    elif what < 0.7 and town.flight:
        p, packet = town.flight.pop(rng.randrange(len(town.flight)))
        if packet.group == CLUSTER_GROUP and p in town.nodes:
            header = spoilt(packet.header, rng)
            if travels(header):
                town.step(p, Receive(packet.src, CLUSTER_GROUP, 0, header, packet.payload))
    else:
        src = rng.choice([q for q in (*range(NODES), STRANGER) if q != p])
        header = nonsense(rng.choice(CLUSTER_HEADERS), rng)
        header = made_timely(town.nodes[p], header, rng)
        coordinator = town.nodes[p].coordinator
        if coordinator not in (None, p) and rng.random() < 0.5:
            src = coordinator
        town.step(p, Receive(src, CLUSTER_GROUP, 0, header, b"x"))


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_a_peer_says_is_at_worst_its_fault(batch: int) -> None:
    for seed in range(batch * RUNS, (batch + 1) * RUNS):
        rng = Random(seed)
        town = Town(rng)
        for _ in range(30):
            harass(town, rng)
        for _ in range(3):
            town.carry()
            for p in town.nodes:
                town.step(p, Timer(CLUSTER_GROUP, "tick"))
