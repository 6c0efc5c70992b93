"""What a seed stands for: a cluster, what its programs do, and what goes wrong when.

The same seed gives the same plan under every hash seed. What becomes of it is up to the machine:
a plan is replayed, the interleaving is not.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

NAMES = "abcde"
COORDINATOR, SEQUENCER = "@coordinator", "@sequencer"  # targets that are looked up when it happens

SUSPECT_MS = (500, 800, 1500)
PAUSES = (0.2, 0.5, 0.8, 0.95, 1.0, 1.1, 1.3, 2.0)  # lengths of a pause, in units of suspect_ms
BEGIN, END = 0.3, 1.6  # seconds after all are in: when faults begin
LOSS = (0.01, 0.05, 0.15)
DELAYS_MS = (5.0, 30.0, 100.0)
DISKS = (16, 64, 256)  # KiB for the trace of one process
CLOCK_STEPS = (-86_400.0, -3600.0, -1.0, 1.0, 3600.0, 86_400.0)  # seconds
MEMBERS_ONLY = ("slow", "fast_p", "relative", "block_total", "two_layered")

JOINS: tuple[dict[str, Any], ...] = (
    {"order": "total"},
    {"order": "total"},
    {"order": "total", "resilience": 1},
    {"order": "total", "uniform": True},
    {"order": "hybrid"},
    {"order": "causal-total", "protocol": "sequencing_causal"},
    {"order": "global-total", "protocol": "sequencing_global"},
    {"protocol": "sequencer_pb"},
    {"protocol": "sequencer_bb"},
    {"protocol": "sequencer_bb", "uniform": True},
    {"protocol": "javagroups"},
    {"protocol": "agreed"},
    {"order": "causal"},
    {"order": "causal", "resilience": 1},
    {"protocol": "vector"},
    {"protocol": "fast"},
    {"order": "fifo"},
    {"protocol": "fifo"},
    {"protocol": "nak"},
    {"protocol": "reliable"},
    {"protocol": "uniform"},
    {"protocol": "block_total"},
)
"""How a group is joined. What each promises is in `promises`, in the judge's own words."""


class Group(msgspec.Struct, frozen=True):
    """A group, and who is in it from the start."""

    name: str
    join: dict[str, Any]
    members: tuple[str, ...]


class Fault(msgspec.Struct, frozen=True):
    """One thing that goes wrong, and is over after a while."""

    kind: str
    at: float  # seconds after all were in
    seconds: float = 0.0  # until it is mended; of a kill: until it is started again
    who: tuple[str, ...] = ()  # names, or a role
    how: dict[str, Any] = {}

    def __str__(self) -> str:
        parts = [f"{self.at:.2f} s {self.kind}", *self.who]
        parts += [f"for {self.seconds:.2f} s"] if self.seconds else []
        parts += [f"{key}={value}" for key, value in self.how.items()]
        return " ".join(parts)


class Plan(msgspec.Struct, frozen=True):
    """One run."""

    seed: int
    names: tuple[str, ...]  # nodes at the start; the first starts the cluster
    groups: tuple[Group, ...]
    options: dict[str, Any]  # of all nodes
    each: dict[str, dict[str, Any]]  # options of single nodes
    rate: float  # messages each program sends in a second
    size: int  # bytes of a body, about
    slow_ms: dict[str, float]  # readers that rest after each batch
    guests: dict[str, tuple[str, ...]]  # groups that a node sends to without being a member
    loop: str  # "asyncio" or "uvloop"
    close_together: bool  # in the end: all at once, or one after the other
    faults: tuple[Fault, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of fault, each once."""
        return tuple(dict.fromkeys(fault.kind for fault in self.faults))

    @property
    def suspect_ms(self) -> int:
        return int(self.options["suspect_ms"])

    @property
    def merges(self) -> bool:
        """Does every side of a partition go on?"""
        return self.options.get("partition") == "merge"


def plan_of(seed: int) -> Plan:
    """The plan of a seed. Seeds in a row go through all kinds of fault in turn."""
    rng = Random(f"chaos {seed}")
    names = tuple(NAMES[: rng.choice((3, 3, 4, 4, 5))])
    options = _options(rng)
    kinds = list(KINDS)
    wanted = [kinds[seed % len(kinds)], *rng.sample(kinds, rng.choice((0, 0, 1, 1, 2)))]
    each: dict[str, dict[str, Any]] = {}
    if len(names) > 3 and rng.random() < 0.2:
        each[rng.choice(names)] = {"sequencer": True}
    groups = _groups(rng, [name for name in names if name not in each])
    faults = [
        fault
        for kind in dict.fromkeys(wanted)
        for fault in KINDS[kind](rng, names, options["suspect_ms"] / 1000, groups)
    ]
    return Plan(
        seed,
        names,
        groups,
        options,
        each,
        rate=rng.choice((20.0, 60.0, 200.0)),
        size=rng.choice((20, 200, 4000)),
        slow_ms={rng.choice(names): rng.choice((5.0, 50.0))} if rng.random() < 0.15 else {},
        guests=_guests(rng, names, groups, each),
        loop=rng.choice(("asyncio", "uvloop")),
        close_together=rng.random() < 0.1,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
    )


def _options(rng: Random) -> dict[str, Any]:
    suspect_ms = rng.choice(SUSPECT_MS)
    options: dict[str, Any] = {"suspect_ms": suspect_ms, "heartbeat_ms": suspect_ms // 8}
    if rng.random() < 0.2:
        options["transport"] = "udp"
    if rng.random() < 0.15:
        options["partition"] = "merge"
    if rng.random() < 0.1:
        options["bodies_apart"] = True
    if rng.random() < 0.1:
        options["detector"] = "accrual"
    return options


def _groups(rng: Random, names: list[str]) -> tuple[Group, ...]:
    """One to three; the first has everybody, the others at least two."""
    groups = []
    for number in range(rng.choice((1, 1, 2, 3))):
        members = names if number == 0 else rng.sample(names, rng.randint(2, len(names)))
        join = dict(rng.choice(JOINS))
        groups.append(Group(f"g{number}", {**join, "scope": "group"}, tuple(sorted(members))))
    return tuple(groups)


def _guests(
    rng: Random, names: tuple[str, ...], groups: tuple[Group, ...], each: dict[str, Any]
) -> dict[str, tuple[str, ...]]:
    if rng.random() > 0.3:
        return {}
    open_to_all = [group for group in groups if group.join.get("protocol") not in MEMBERS_ONLY]
    return {
        name: found
        for name in names
        if (found := tuple(g.name for g in open_to_all if name not in g.members))
    }


# -- kinds of fault -------------------------------------------------------------------------------

Maker = Callable[[Random, tuple[str, ...], float, tuple[Group, ...]], list[Fault]]


def _at(rng: Random) -> float:
    return round(rng.uniform(BEGIN, END), 3)


def _again(rng: Random) -> float:
    """Seconds until a killed process is started again; 0: never."""
    return 0.0 if rng.random() < 0.3 else round(rng.uniform(0.05, 1.5), 3)


def _one(kind: str, who: str | None, length: Callable[[Random, float], float]) -> Maker:
    """Something that happens to one process; `who` is a role, or None: anybody."""

    def make(rng: Random, names: tuple[str, ...], suspect: float, _: object) -> list[Fault]:
        target = rng.choice(names) if who is None else who
        return [Fault(kind, _at(rng), round(length(rng, suspect), 3), (target,))]

    return make


def _kill_several(rng: Random, names: tuple[str, ...], *_: object) -> list[Fault]:
    who = tuple(sorted(rng.sample(names, 2)))
    return [Fault("kill several", _at(rng), _again(rng), who)]


def _kill_all_but_one(rng: Random, names: tuple[str, ...], *_: object) -> list[Fault]:
    who = tuple(sorted(rng.sample(names, len(names) - 1)))
    return [Fault("kill all but one", _at(rng), _again(rng), who)]


def _kill_one_by_one(rng: Random, names: tuple[str, ...], suspect: float, _: object) -> list[Fault]:
    """Each is out of the view before the next one dies: a majority is left every time."""
    at, who = _at(rng), rng.sample(names, len(names) - 2)
    gap = suspect + 0.5
    return [
        Fault("kill one by one", round(at + number * gap, 3), _again(rng), (name,))
        for number, name in enumerate(who)
    ]


def _pause_several(rng: Random, names: tuple[str, ...], suspect: float, _: object) -> list[Fault]:
    who = tuple(sorted(rng.sample(names, 2)))
    return [Fault("pause several", _at(rng), round(_pause(rng, suspect), 3), who)]


def _pause(rng: Random, suspect: float) -> float:
    return suspect * rng.choice(PAUSES)


def _outage(rng: Random, suspect: float) -> float:
    return suspect * rng.choice((0.5, 1.0, 1.5, 2.5))


def _halves(rng: Random, names: tuple[str, ...], suspect: float, _: object) -> list[Fault]:
    side = tuple(sorted(rng.sample(names, len(names) // 2)))
    return [Fault("cut in halves", _at(rng), round(_outage(rng, suspect), 3), side)]


def _flapping(rng: Random, names: tuple[str, ...], suspect: float, _: object) -> list[Fault]:
    period = round(suspect * rng.choice((0.2, 0.6, 1.1)), 3)
    who, at = (rng.choice(names),), _at(rng)
    times = max(2, min(5, int(2.0 / (2 * period))))
    return [
        Fault("flapping", round(at + 2 * number * period, 3), period, who)
        for number in range(times)
    ]


def _slow_link(rng: Random, names: tuple[str, ...], *_: object) -> list[Fault]:
    who = (rng.choice(names),) if rng.random() < 0.5 else names
    how = {"delay_ms": rng.choice(DELAYS_MS), "jitter_ms": rng.choice((0.0, 10.0))}
    return [Fault("slow link", _at(rng), round(rng.uniform(0.5, 2.0), 3), who, how)]


def _loss(rng: Random, names: tuple[str, ...], *_: object) -> list[Fault]:
    seconds = round(rng.uniform(0.5, 2.0), 3)
    return [Fault("loss", _at(rng), seconds, names, {"loss": rng.choice(LOSS)})]


def _resets(rng: Random, names: tuple[str, ...], *_: object) -> list[Fault]:
    who = (rng.choice(names),)
    times = sorted(_at(rng) for _ in range(rng.choice((1, 1, 2))))
    return [Fault("reset", at, 0.0, who) for at in times]


def _full_disk(rng: Random, names: tuple[str, ...], *_: object) -> list[Fault]:
    return [Fault("full disk", 0.0, 0.0, (rng.choice(names),), {"kib": rng.choice(DISKS)})]


def _clock_step(rng: Random, names: tuple[str, ...], *_: object) -> list[Fault]:
    who, step = (rng.choice(names),), rng.choice(CLOCK_STEPS)
    return [Fault("clock step", _at(rng), 0.0, who, {"step": step})]


def _arrival(rng: Random, names: tuple[str, ...], _: float, groups: object) -> list[Fault]:
    return [Fault("arrival", _at(rng), 0.0, (name,)) for name in ("y", "z")[: rng.choice((1, 2))]]


def _departure(rng: Random, names: tuple[str, ...], *_: object) -> list[Fault]:
    return [Fault("departure", _at(rng), _again(rng), (rng.choice(names),))]


def _flood(rng: Random, names: tuple[str, ...], suspect: float, _: object) -> list[Fault]:
    """Everybody sends at full speed, and somebody stops in the middle of it."""
    at, seconds = _at(rng), round(rng.uniform(0.3, 1.0), 3)
    stop = round(suspect * rng.choice(PAUSES), 3)
    return [
        Fault("flood", at, 0.0, names, {"messages": rng.choice((300, 1000)), "seconds": seconds}),
        Fault("pause", round(at + seconds / 2, 3), stop, (rng.choice(names),)),
    ]


def _leave(rng: Random, _: object, suspect: float, groups: tuple[Group, ...]) -> list[Fault]:
    group = rng.choice(groups)
    who = (rng.choice(group.members),)
    return [Fault("leave a group", _at(rng), 0.0, who, {"group": group.name})]


def _bounce(rng: Random, _: object, suspect: float, groups: tuple[Group, ...]) -> list[Fault]:
    """Out of a group and in again, some at the same time."""
    group = rng.choice(groups)
    who = rng.sample(group.members, rng.choice((1, 2)))
    return [
        Fault(
            "leave and join",
            _at(rng),
            round(rng.uniform(0.01, 0.6), 3),
            (n,),
            {"group": group.name},
        )
        for n in who
    ]


KINDS: dict[str, Maker] = {
    "kill": _one("kill", None, lambda rng, _: _again(rng)),
    "kill coordinator": _one("kill coordinator", COORDINATOR, lambda rng, _: _again(rng)),
    "kill sequencer": _one("kill sequencer", SEQUENCER, lambda rng, _: _again(rng)),
    "kill several": _kill_several,
    "kill all but one": _kill_all_but_one,
    "kill one by one": _kill_one_by_one,
    "pause": _one("pause", None, _pause),
    "pause coordinator": _one("pause coordinator", COORDINATOR, _pause),
    "pause sequencer": _one("pause sequencer", SEQUENCER, _pause),
    "pause several": _pause_several,
    "cut one": _one("cut one", None, _outage),
    "cut coordinator": _one("cut coordinator", COORDINATOR, _outage),
    "cut in halves": _halves,
    "cut one way": _one("cut one way", None, _outage),
    "flapping": _flapping,
    "slow link": _slow_link,
    "loss": _loss,
    "reset": _resets,
    "full disk": _full_disk,
    "clock step": _clock_step,
    "flood": _flood,
    "arrival": _arrival,
    "departure": _departure,
    "leave a group": _leave,
    "leave and join": _bounce,
}
