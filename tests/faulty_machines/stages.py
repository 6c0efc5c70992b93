"""Where faults show: networks, crashes and view changes, drawn from a seed."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from domains import AT_ONCE
from ordercast.core.protocol import Options
from ordercast.simulation import (
    Crash,
    Exponential,
    FlushTo,
    GroupConfig,
    LogNormal,
    Uniform,
    Workload,
    overlapping_groups,
)
from ordercast.simulation.engine import Simulation

Fields = dict[str, Any]  # of a SimulationConfig

EVERYBODY = (0, 1, 2, 3)


def lossy(_: Random) -> Fields:
    return {"loss": 0.2, "duplicate": 0.1, "delay": Uniform(500, 3000)}


def doubling(_: Random) -> Fields:
    return {"duplicate": 0.2, "delay": Uniform(500, 3000)}


def reordering(_: Random) -> Fields:
    return {"delay": Uniform(500, 5000)}


def two_crashes(rng: Random) -> Fields:
    faults = tuple(Crash(p, at_ms=rng.uniform(1, 8)) for p in (0, 1))
    return {"delay": Uniform(500, 3000), "faults": faults}


def sender_crash(rng: Random) -> Fields:
    crash = Crash(0, at_ms=rng.uniform(1, 8), lose=0.5)
    return {"delay": Uniform(500, 3000), "faults": (crash,)}


def crash_and_flush(rng: Random) -> Fields:
    at_ms = rng.uniform(1, 8)
    flush = FlushTo(1, EVERYBODY[1:], at_ms=at_ms + rng.uniform(0, 10))
    return {"delay": Uniform(500, 3000), "faults": (Crash(0, at_ms=at_ms, lose=0.5), flush)}


def early_flush(rng: Random) -> Fields:
    return {
        "delay": Exponential(500, 3000),
        "faults": (FlushTo(1, EVERYBODY, at_ms=rng.uniform(3, 12)),),
        "options": Options(ack_every=1, ack_delay_ms=1, status_ms=1),
    }


def stragglers_and_flush(rng: Random) -> Fields:
    return {
        "delay": LogNormal(1000, 1.6),
        "faults": (FlushTo(1, EVERYBODY, at_ms=rng.uniform(5, 25)),),
        "options": Options(ack_every=1, ack_delay_ms=1, status_ms=1),
    }


class Says(msgspec.Struct, frozen=True):
    """The application at a process wants to say something: it waits until it is in the group."""

    process: int
    group: int
    at_ms: float

    def apply(self, simulation: Simulation) -> None:
        simulation.say(self.process, (self.group,))


def join(rng: Random) -> Fields:
    """The one that comes has something to say."""
    at_ms = rng.uniform(4, 12)
    return {
        "delay": Uniform(500, 5000),
        "groups": (GroupConfig(members=(0, 1, 2)),),
        "faults": (Says(3, 1, at_ms=1), FlushTo(1, EVERYBODY, at_ms=at_ms)),
    }


def orderly(_: Random) -> Fields:
    return {"fifo": True, "delay": Uniform(500, 5000)}


def host_crash(rng: Random) -> Fields:
    """A process stops, and nearly all that it had handed over is lost with it."""
    crash = Crash(0, at_ms=rng.uniform(1, 8), lose=0.95)
    return {"delay": Uniform(500, 3000), "faults": (crash,)}


def orderly_crash_and_flush(rng: Random) -> Fields:
    """Some packets take long, and are lost when their sender stops; then the view changes."""
    at_ms = rng.uniform(6, 12)
    flush = FlushTo(1, EVERYBODY[1:], at_ms=at_ms + rng.uniform(0, 6))
    return {
        "fifo": True,
        "delay": LogNormal(300, 1.5),
        "faults": (Crash(0, at_ms=at_ms, lose=0.9), flush),
        "workload": Workload(reply=0.5),
        "messages": 16,
    }


def lossy_sender_crash(rng: Random) -> Fields:
    return {**sender_crash(rng), "loss": 0.2}


def growing_group(rng: Random) -> Fields:
    """It begins with one member, which stops after others have come."""
    grows = tuple(FlushTo(1, tuple(range(n)), at_ms=n, leader=3) for n in (2, 3))
    at_ms = rng.uniform(15, 30)
    return {
        "delay": Uniform(500, 3000),
        "groups": (GroupConfig(members=(0,), leader=3),),
        "faults": (
            *grows,
            Crash(0, at_ms=at_ms, lose=0.9),
            FlushTo(1, (1, 2), at_ms=at_ms + 5, leader=3),
        ),
        "workload": Workload(start_ms=12, senders=(0,)),
    }


def two_groups(_: Random) -> Fields:
    """Two processes are in both groups; packets overtake each other."""
    groups = (GroupConfig(members=(0, 1, 2)), GroupConfig(members=(1, 2, 3)))
    workload = Workload(burst=2, reply=0.8, depth=4)
    return {"options": AT_ONCE, "groups": groups, "delay": Uniform(500, 5000), "workload": workload}


def ring_of_groups(_: Random) -> Fields:
    """Each group shares one process with the next, and the last with the first."""
    return {
        "options": AT_ONCE,
        "groups": overlapping_groups(4, 4, 2),
        "delay": LogNormal(500, 2.0),
        "workload": Workload(reply=1.0, depth=6),
    }


def overlapping_crash(rng: Random) -> Fields:
    """One speaks to both groups and stops, its packets with it; both views change together."""
    at_ms = rng.uniform(4, 8)
    return {
        "groups": (GroupConfig(members=(0, 1, 2)), GroupConfig(members=(0, 1, 3))),
        "delay": Exponential(200, 3000),
        "faults": (Crash(0, at_ms=at_ms, lose=0.7), FlushTo(1, (1, 2), at_ms=at_ms + 10)),
        "workload": Workload(senders=(0, 0, 1), burst=2, reply=0.8),
    }


def overlapping_crashes(rng: Random) -> Fields:
    """Two stop, the second soon after it answered the first."""
    at_ms = rng.uniform(4, 7)
    return {
        **overlapping_crash(rng),
        "options": AT_ONCE,
        "groups": (GroupConfig(members=(0, 1, 2)), GroupConfig(members=EVERYBODY)),
        "faults": (
            Crash(0, at_ms=at_ms, lose=0.9),
            Crash(1, at_ms=at_ms + rng.uniform(0, 3), lose=0.3),
            FlushTo(2, (2, 3), at_ms=at_ms + 10),
        ),
        "workload": Workload(senders=(0, 1, 2), burst=2, reply=0.8),
    }


def orderly_overlap(_: Random) -> Fields:
    """Two groups share three of four; some packets take long, but those of a pair keep in order."""
    return {
        "options": AT_ONCE,
        "groups": (GroupConfig(members=(0, 1, 2)), GroupConfig(members=EVERYBODY)),
        "fifo": True,
        "delay": LogNormal(1000, 1.5),
        "workload": Workload(burst=2, reply=0.8),
    }


def orderly_triangle(_: Random) -> Fields:
    """Three groups of three; one is in all of them."""
    return {
        **orderly_overlap(_),
        "groups": tuple(GroupConfig(members=m) for m in ((0, 1, 3), (1, 2, 3), (0, 2, 3))),
    }


def two_groups_of_one(_: Random) -> Fields:
    """Two processes are in both groups, which one sequencer numbers."""
    groups = (GroupConfig(members=(0, 1, 2), leader=0), GroupConfig(members=(1, 2, 3), leader=0))
    return {**two_groups(_), "groups": groups}


def two_groups_of_two(_: Random) -> Fields:
    """One process is in both groups; each group has its own sequencer."""
    groups = (GroupConfig(members=(0, 1)), GroupConfig(members=(3, 2, 1)))
    return {**two_groups(_), "groups": groups}


def two_groups_apart(_: Random) -> Fields:
    """Two processes are in both groups; each group has its own sequencer."""
    groups = (GroupConfig(members=(0, 1, 2)), GroupConfig(members=(3, 1, 2)))
    return {**two_groups(_), "groups": groups}


def triangle_of_three(_: Random) -> Fields:
    """Each of three groups shares a process with each of the others; three sequencers."""
    return {**two_groups(_), "groups": overlapping_groups(3, 3, 2)}


def triangle_of_one(_: Random) -> Fields:
    """The same with one sequencer."""
    return {**two_groups(_), "groups": overlapping_groups(3, 3, 2, leader=3)}


def guest_in_a_chain(_: Random) -> Fields:
    """Process 2 speaks in the first group as a guest, and hears of it in others."""
    groups = (
        GroupConfig(members=(0, 1), guests=(2,)),
        GroupConfig(members=(2, 1)),
        GroupConfig(members=(2, 0)),
    )
    workload = Workload(burst=2, reply=1.0, depth=8)
    return {**two_groups(_), "groups": groups, "delay": LogNormal(500, 2.2), "workload": workload}


def three_groups_lossy(_: Random) -> Fields:
    """Two processes are in three groups of one sequencer; packets are lost."""
    groups = tuple(GroupConfig(members=(0, 1), leader=3) for _ in range(3))
    options = msgspec.structs.replace(AT_ONCE, ack_every=1, ack_delay_ms=1, status_ms=1)
    return {**two_groups(_), "groups": groups, "loss": 0.2, "options": options, "messages": 12}
