"""The arenas: kinds of run of given groups that every protocol has to stand. Who joins, leaves and
comes back does so in a cluster: see `cluster_arenas`.

An arena makes a config from a protocol and a seed, and says what must hold there beside what the
protocol promises. A protocol that is new in the registry needs no line here.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from ordercast.core.events import Receive
from ordercast.core.protocol import Options, OrderingProtocol, Together
from ordercast.placement.components import strong_components, weak_components
from ordercast.process.headers import headers_of
from ordercast.reliability.link import LinkAck, Linked
from ordercast.runtime.options import NodeOptions
from ordercast.simulation import (
    Crash,
    FlushTo,
    GroupConfig,
    Heal,
    Partition,
    SimulationConfig,
    Uniform,
    Workload,
    overlapping_groups,
)
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.frame import Splitter

Protocol = type[OrderingProtocol]
Fields = dict[str, Any]  # of a SimulationConfig

TALK = Workload(reply=0.8, depth=4)  # without answers no message depends on another's
MEMBERS = 4  # at least; MOST at most
MOST = 6
MESSAGES = 6  # begin a conversation; the oracle tries all pairs, so runs are short

ALWAYS = ("wellformed", "views")
AFTER_A_VIEW_CHANGE = ("vsync", "agreement")
ORDERS = ("fifo", "causal", "total", "hybrid")  # first words of properties with a uniform form
LIVE = ("validity", "agreement", "agreement.uniform")  # need somebody to answer

N0: Fields = {"loss": 0.15, "duplicate": 0.1, "delay": Uniform(500, 3000)}
N1: Fields = {"duplicate": 0.1, "delay": Uniform(500, 3000)}
N2: Fields = {"fifo": True, "delay": Uniform(500, 3000)}
NETWORKS = (N0, N1, N2)

WIDE_DELAYS = (
    Uniform(100, 300),
    Uniform(9_000, 12_000),
    Uniform(70_000, 90_000),
    Uniform(130_000, 150_000),
    Uniform(100, 150_000),
)
LIVE_OPTIONS = (
    Options(),
    NodeOptions().for_stack(),
    NodeOptions.given({"transport": "udp"}).for_stack(),
)  # of simulated processes, and of nodes on TCP and on UDP


class Arena(msgspec.Struct, frozen=True):
    """A kind of run."""

    name: str
    says: str
    fields: Callable[[Protocol, Random], Fields]  # what differs from a plain run
    also: tuple[str, ...] = ()  # must hold here, promised or not
    settles: bool = True  # every run must come to rest and be judged to the end
    uniform: bool = False  # what the dead have delivered counts, too
    counted: bool = False  # packets are bounded by what the protocol declares
    views_change: bool = False  # the driver changes views
    needs_guests: bool = False

    def serves(self, protocol: Protocol) -> bool:
        """Can this protocol be run here? Groups of several sequencers change only as the nodes of a
        cluster agree: see the arenas of clusters."""
        if self.needs_guests and protocol.declaration.closed:
            return False
        return not (self.views_change and protocol.together is not None)

    def config(self, protocol: Protocol, seed: int) -> SimulationConfig:
        """The run that this seed gives."""
        plain: Fields = {
            "protocol": protocol,
            "members": MEMBERS + seed % (MOST - MEMBERS + 1),
            "messages": MESSAGES,
            "workload": TALK,
            "seed": seed,
        }
        rng = Random(f"arena {self.name} {seed}")
        fields = self.fields(protocol, rng)
        if protocol.together is not None and "groups" in fields:
            fields["groups"] = _placed(fields["groups"], protocol.together)
        return SimulationConfig(**{**plain, **fields})

    def wanted(self, protocol: Protocol) -> tuple[str, ...]:
        """The properties that every run here must have."""
        promises = protocol.declaration.promises
        if not self.settles:  # some wait for the dead, for good
            promises = tuple(name for name in promises if name not in LIVE)
        if self.uniform:
            orders = (name for name in promises if name.partition(".")[0] in ORDERS)
            promises += ("agreement.uniform", *(f"{name}.uniform" for name in orders))
        return tuple(dict.fromkeys((*promises, *ALWAYS, *self.also)))


def _placed(groups: tuple[GroupConfig, ...], together: Together) -> tuple[GroupConfig, ...]:
    """Without a coordinator nobody sees to it that groups which must have one sequencer do."""
    members = {g: frozenset(group.members) for g, group in enumerate(groups)}
    parts = {"strong": strong_components, "weak": weak_components}
    leaders = [group.leader for group in groups]
    for part in parts[together](members) if together in parts else ():
        first = groups[min(part)]
        for g in part:
            leaders[g] = first.members[0] if first.leader is None else first.leader
    return tuple(
        msgspec.structs.replace(group, leader=leader)
        for group, leader in zip(groups, leaders, strict=True)
    )


def through_the_codec(protocol: Protocol) -> Callable[[Receive], Receive]:
    """A transform that makes bytes of a packet, and a packet of the bytes."""
    codec = ChannelCodec((Linked, LinkAck, *headers_of(protocol)))

    def transform(packet: Receive) -> Receive:
        raw = codec.encode(packet.group, packet.era, packet.header, packet.payload)
        ((group, tag, era, header, payload),) = Splitter(len(raw)).feed(raw)
        return Receive(packet.src, group, era, codec.decode(tag, header), payload)

    return transform


def _lossy(_: Protocol, __: Random) -> Fields:
    return N0


def _reordering(_: Protocol, __: Random) -> Fields:
    return N1


def _orderly(_: Protocol, __: Random) -> Fields:
    return N2


def _as_bytes(protocol: Protocol, rng: Random) -> Fields:
    return {**rng.choice(NETWORKS), "transform": through_the_codec(protocol)}


def _overlapping(_: Protocol, rng: Random) -> Fields:
    delay = Uniform(500, rng.choice((3000, 30_000)))
    talk = Workload(reply=0.8, depth=4, burst=rng.randint(1, 3))
    return {**rng.choice(NETWORKS), **_shape(rng), "delay": delay, "workload": talk}


def _shape(rng: Random) -> Fields:
    """Groups that share members: a pair, a chain, a ring, or any."""
    members = rng.randint(MEMBERS, MOST)
    pair = overlapping_groups(members, 2, 3)
    ring = overlapping_groups(members, members, 2)
    anyhow = tuple(
        GroupConfig(members=tuple(sorted(rng.sample(range(members), rng.randint(2, 4)))))
        for _ in range(rng.randint(2, 4))
    )
    tight = overlapping_groups(members, rng.randint(3, members), 3)  # many share many
    return {"members": members, "groups": rng.choice((pair, ring, ring[:-1], tight, anyhow))}


def _crash(_: Protocol, rng: Random) -> Fields:
    """Nobody is told: what the dead said may reach only some, and who needs them waits."""
    shape = _shape(rng)
    dead = rng.sample(range(shape["members"]), rng.randint(1, 2))
    faults = tuple(Crash(p, at_ms=rng.uniform(1, 12), lose=0.5) for p in dead)
    return {**rng.choice(NETWORKS), **shape, "faults": faults, "quiet_ms": 3000.0}


def _slow_readers(_: Protocol, rng: Random) -> Fields:
    return {**rng.choice(NETWORKS), "consume_ms": rng.uniform(1, 20), "window": rng.randint(1, 4)}


def _wide_area(_: Protocol, rng: Random) -> Fields:
    return {**rng.choice((N2, {})), **_far_apart(rng)}


def _lossy_wide_area(_: Protocol, rng: Random) -> Fields:
    return {"loss": rng.uniform(0.01, 0.1), "duplicate": rng.uniform(0, 0.05), **_far_apart(rng)}


def _far_apart(rng: Random) -> Fields:
    """Lines with a delay, applications that consume, one of them perhaps slowly."""
    slow = ((rng.randrange(MEMBERS), rng.uniform(100, 500)),)
    every_us = rng.choice((1000.0, 20_000.0, 300_000.0))
    return {
        "delay": rng.choice(WIDE_DELAYS),
        "options": rng.choice(LIVE_OPTIONS),
        "consume_ms": rng.uniform(0.1, 5),
        "slow_consumers": rng.choice(((), slow)),
        "workload": Workload(reply=0.8, depth=4, every_us=every_us),
        "messages": 2 * MESSAGES,
        "quiet_ms": 10 * 60_000.0,  # a repeated word of a node on TCP may wait for minutes
    }


def _partition(_: Protocol, rng: Random) -> Fields:
    lonely, cut = rng.randrange(MEMBERS), rng.uniform(1, 8)
    faults = (Partition(((lonely,),), at_ms=cut), Heal(at_ms=cut + rng.uniform(1, 400)))
    return {**rng.choice(NETWORKS), "faults": faults}


def _leader_crash(_: Protocol, rng: Random) -> Fields:
    return {**rng.choice(NETWORKS), **_without_leader(rng)}


def _without_leader(rng: Random, guests: tuple[int, ...] = ()) -> Fields:
    crash = rng.uniform(1, 12)
    members = tuple(range(MEMBERS))
    faults = (
        Crash(0, at_ms=crash, lose=0.5),
        FlushTo(1, members[1:], at_ms=crash + rng.uniform(0, 30)),
    )
    return {"groups": (GroupConfig(members=members, guests=guests),), "faults": faults}


def _open(protocol: Protocol, rng: Random) -> Fields:
    """Guests speak; some of them are members of other groups, and pass on what they heard there."""
    network = rng.choice(NETWORKS)
    if protocol.together is not None:
        return {**network, **_open_at_rest(rng)}
    return {**network, **rng.choice((_open_at_rest, _open_without_leader))(rng)}


def _open_groups(rng: Random, members: int) -> tuple[GroupConfig, ...]:
    groups = []
    for _ in range(rng.randint(1, 3)):
        who = rng.sample(range(members), rng.randint(3, 5))
        inside = rng.randint(2, len(who) - 1)
        listed = tuple(sorted(who[:inside]))
        groups.append(GroupConfig(members=listed, guests=tuple(who[inside:])))
    return tuple(groups)


def _open_at_rest(rng: Random) -> Fields:
    groups = _open_groups(rng, MOST)
    return {"members": MOST, "groups": groups, **_perhaps_slow(rng)}


def _perhaps_slow(rng: Random) -> Fields:
    slow = {"consume_ms": rng.uniform(1, 20), "window": rng.randint(1, 4)}
    return rng.choice((slow, {}))


def _open_without_leader(rng: Random) -> Fields:
    """The leader dies; a flush. What a guest had said goes on."""
    guests = (MEMBERS, MEMBERS + 1)[: rng.randint(1, 2)]
    return {"members": MOST, **_without_leader(rng, guests)}


def _uniform(protocol: Protocol, rng: Random) -> Fields:
    """Enough hold what is delivered: the dead have delivered nothing that the living do not."""
    crashes = rng.randint(1, 2)
    options = Options(uniform=True) if rng.random() < 0.3 else Options(resilience=crashes)
    if options.uniform:
        crashes = 1  # of groups of three
    shapes = (_survived_crashes, _survived_overlapping)
    codec = through_the_codec(protocol) if rng.random() < 0.2 else None
    return {
        **rng.choice(NETWORKS),
        **rng.choice(shapes)(rng, crashes),
        "options": options,
        "transform": codec,
        **rng.choice(({}, {}, {"consume_ms": rng.uniform(1, 20)})),
    }


def _survived_crashes(rng: Random, crashes: int) -> Fields:
    """Some die at about the same time, perhaps the leader; a flush."""
    members = tuple(range(crashes + rng.randint(2, 3)))
    dead, at_ms = rng.sample(members, crashes), rng.uniform(1, 12)
    faults = [Crash(p, at_ms=at_ms + rng.uniform(0, 3), lose=rng.uniform(0.5, 1)) for p in dead]
    living = tuple(p for p in members if p not in dead)
    return {
        "members": len(members),
        "groups": (GroupConfig(members=members),),
        "faults": (*faults, FlushTo(1, living, at_ms=at_ms + rng.uniform(3, 30))),
    }


def _survived_overlapping(rng: Random, crashes: int) -> Fields:
    """The same where groups share members. Those of an order across groups change together."""
    members = tuple(range(crashes + rng.randint(3, 4)))
    size = rng.randint(crashes + 1, len(members) - 1)
    groups = overlapping_groups(len(members), rng.randint(2, 3), max(size, 3))
    dead, at_ms = rng.sample(members, crashes), rng.uniform(2, 14)
    faults = [Crash(p, at_ms=at_ms + rng.uniform(0, 3), lose=rng.uniform(0.5, 1)) for p in dead]
    flushes = [
        FlushTo(g, living, at_ms=at_ms + rng.uniform(4, 50))
        for g, group in enumerate(groups, start=1)
        if (living := tuple(p for p in group.members if p not in dead))
    ]
    return {
        "members": len(members),
        "groups": groups,
        "faults": (*faults, *flushes),
        "messages": 2 * MESSAGES,
        "workload": Workload(reply=0.8, depth=4, burst=rng.randint(1, 2)),
    }


ARENAS: dict[str, Arena] = {
    arena.name: arena
    for arena in (
        Arena("N0", "packets are lost, doubled and overtake each other", _lossy),
        Arena("N1", "packets are doubled and overtake each other", _reordering),
        Arena("N2", "packets of a pair stay in order", _orderly),
        Arena("wire", "every packet becomes bytes and is read back", _as_bytes),
        Arena("overlapping", "groups share members", _overlapping),
        Arena("crash", "one or two die, and no view changes", _crash, settles=False),
        Arena("slow_readers", "small windows, applications take their time", _slow_readers),
        Arena("wide_area", "0.1 to 150 ms between processes", _wide_area, counted=True),
        Arena(
            "lossy_wide_area",
            "0.1 to 150 ms between processes, and packets are lost",
            _lossy_wide_area,
            counted=True,
        ),
        Arena("partition", "one member is cut off for a while", _partition),
        Arena(
            "leader_crash",
            "the leader dies; a flush",
            _leader_crash,
            AFTER_A_VIEW_CHANGE,
            views_change=True,
        ),
        Arena(
            "open", "some send and are no members", _open, AFTER_A_VIEW_CHANGE, needs_guests=True
        ),
        Arena(
            "uniform",
            "as many crash as deliveries must survive, and lose what they sent",
            _uniform,
            AFTER_A_VIEW_CHANGE,
            uniform=True,
            views_change=True,
        ),
    )
}
