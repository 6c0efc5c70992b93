"""Pictures of what members see, as the pages of protocols show them; and whether they are true.

    news: alice, bob, carol             a group; without any: one group of alice, bob and carol
    alice sends a1, a2 [to news]        in this order
    bob sends b1 [to news] after a1     as soon as bob has delivered a1
    alice crashes                       at some moment; some of its last packets are lost with it

    may happen    bob: a1 b1 | carol: a1 b1       bob delivers a1, then b1, and no more; carol too
    never         bob: a1 b1 | carol: b1 a1       bob delivers a1 before b1, and carol b1 before a1

`nothing` stands for a member that delivers no message. A picture is played many times in the
simulator, every time with other delays. Each line `may happen` must come up, and no line `never`.
Where somebody crashes the processes are nodes of a cluster, so the others go on in a new view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from random import Random

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.membership.options import ClusterOptions
from ordercast.placement.components import strong_components, weak_components
from ordercast.simulation import (
    Crash,
    GroupConfig,
    Outcome,
    SimulationConfig,
    Uniform,
    Workload,
    simulate,
)
from ordercast.simulation.clustered import simulate_cluster
from ordercast.simulation.formed import formed
from ordercast.simulation.workload import Application, Planned

Seen = Mapping[str, tuple[str, ...]]  # by member: its messages, in the order of delivery

MOST_RUNS = 3_000  # until what may happen has happened
LEAST_RUNS = 100  # in which what never happens must not happen
LEAST_CRASHES = 60  # ... where somebody crashes: these runs take longer

GROUP = re.compile(r"(\w+): ([\w, ]+)")
SENDS = re.compile(r"(\w+) +sends ([\w, ]+?)(?: to (\w+))?(?: after (\w+))?")
CRASHES = re.compile(r"(\w+) +crashes")
SHOWN = re.compile(r"(may happen|never) +(.+)")
COMPONENTS = {"strong": strong_components, "weak": weak_components}


class Says(msgspec.Struct, frozen=True):
    """One line of somebody's part."""

    who: str
    messages: tuple[str, ...]
    group: str
    after: str | None


class Picture(msgspec.Struct):
    """Who is in which group, who says what, what can come of it and what cannot."""

    groups: dict[str, tuple[str, ...]]
    says: list[Says]
    crashed: list[str]
    possible: list[Seen]
    never: list[Seen]

    @property
    def members(self) -> list[str]:
        """By their process numbers."""
        return list(dict.fromkeys(name for members in self.groups.values() for name in members))


def read(text: str) -> Picture:
    """The picture that is drawn in these lines."""
    picture = Picture({}, [], [], [], [])
    for line in filter(None, map(str.strip, text.splitlines())):
        if found := SHOWN.fullmatch(line):
            kind, shown = found.groups()
            (picture.possible if kind == "may happen" else picture.never).append(_seen(shown))
        elif found := SENDS.fullmatch(line):
            who, messages, group, after = found.groups()
            picture.says.append(Says(who, tuple(messages.split(", ")), group or "room", after))
        elif found := CRASHES.fullmatch(line):
            picture.crashed.append(found[1])
        elif found := GROUP.fullmatch(line):
            picture.groups[found[1]] = tuple(found[2].split(", "))
        else:
            raise ValueError(f"this line is in no picture: {line!r}")
    picture.groups = picture.groups or {"room": ("alice", "bob", "carol")}
    assert picture.says and (picture.possible or picture.never), "a picture shows something"
    return picture


def _seen(shown: str) -> Seen:
    parts = (part.split(": ") for part in re.split(r" *\| *", shown))
    return {who: tuple(m for m in messages.split() if m != "nothing") for who, messages in parts}


def wrong_with(
    picture: Picture, protocol: type[OrderingProtocol], most: int = MOST_RUNS
) -> list[str]:
    """What the picture claims, and what does not come up; or what comes up, and must not."""
    least = LEAST_CRASHES if picture.crashed else LEAST_RUNS
    missing = list(picture.possible)
    for seed in range(most):
        seen = play(picture, protocol, seed)
        for shown in picture.never:
            if all(_shows(seen[who], messages) for who, messages in shown.items()):
                return [f"it happened: {shown} (seed {seed}: {seen})"]
        missing = [m for m in missing if not all(seen[who] == m[who] for who in m)]
        if not missing and seed >= least:
            return []
    return [f"it never happened: {shown}" for shown in missing]


def _shows(seen: tuple[str, ...], messages: tuple[str, ...]) -> bool:
    """These, in this order, others among them; of no messages: none."""
    rest = iter(seen)
    return all(m in rest for m in messages) if messages else not seen


def play(picture: Picture, protocol: type[OrderingProtocol], seed: int) -> Seen:
    """Once, with the delays of this seed: what each member delivered."""
    members, names = picture.members, list(picture.groups)
    script = Script(picture=picture, members=members, groups=names, turns=cycle(members))
    rng = Random(f"picture {seed}")
    crashed = map(members.index, picture.crashed)
    config = SimulationConfig(
        protocol=protocol,
        members=len(members),
        groups=_groups(picture, protocol),
        messages=1,
        workload=script,
        delay=Uniform(300, 9_000),
        faults=tuple(Crash(p, at_ms=rng.uniform(1, 15), lose=0.7) for p in crashed),
        seed=seed,
    )
    if config.faults:
        cluster = formed(config, ClusterOptions(heartbeat_ms=50, suspect_ms=300))
        return script.seen(simulate_cluster(msgspec.structs.replace(cluster, checks=False)))
    outcome = simulate(config)
    assert outcome.quiescent, outcome.ended
    return script.seen(outcome)


def _groups(picture: Picture, protocol: type[OrderingProtocol]) -> tuple[GroupConfig, ...]:
    """Groups that must have one sequencer get one; without a cluster nobody sees to that."""
    members = picture.members
    inside = [tuple(map(members.index, names)) for names in picture.groups.values()]
    leaders = [group[0] for group in inside]
    components = COMPONENTS.get(protocol.together or "")
    if components is not None:
        for part in components({g: frozenset(group) for g, group in enumerate(inside)}):
            for g in part:
                leaders[g] = inside[min(part)][0]
    return tuple(
        GroupConfig(members=group, leader=leader)
        for group, leader in zip(inside, leaders, strict=True)
    )


class Script(Workload, frozen=True, kw_only=True):
    """A workload that is written down. One for each run: it counts its applications."""

    picture: Picture
    members: list[str]
    groups: list[str]
    turns: Iterator[str]

    def plan(
        self, messages: int, groups_of: Mapping[ProcessId, tuple[GroupId, ...]], rng: Random
    ) -> list[Planned]:
        """All that is said without being asked, at about the same time, each part in its order."""
        planned = []
        for who in self.members:
            first = [said for said in self.picture.says if said.who == who and not said.after]
            tick = self.start_ms * 100 + rng.randrange(300)
            for said in first:
                for _ in said.messages:
                    planned.append(Planned(tick, self.members.index(who), (self.group(said),)))
                    tick += rng.randrange(1, 50)
        return sorted(planned)

    def application(self, sizes: Mapping[GroupId, int], rng: Random) -> Application:
        """That of the next member; in a cluster processes that come back have one, too."""
        return Answering(self, next(self.turns))

    def group(self, said: Says) -> GroupId:
        """Its number."""
        return self.groups.index(said.group) + 1

    def labels(self, p: ProcessId, g: GroupId) -> list[str]:
        """What this process says in this group, in its order."""
        parts = [s for s in self.picture.says if (s.who, self.group(s)) == (self.members[p], g)]
        assert len(parts) == 1 or not any(said.after for said in parts), "whose order is known"
        return [message for said in parts for message in said.messages]

    def seen(self, outcome: Outcome) -> Seen:
        """What each member delivered, by the names that the picture gives to messages."""
        unsaid: dict[tuple[ProcessId, GroupId], list[str]] = {}
        labels: dict[str | None, str] = {}
        seen: dict[str, list[str]] = {name: [] for name in self.members}
        for event in outcome.events():
            if event.kind not in ("send", "deliver") or not event.process or not event.group:
                continue
            p, g = int(event.process[1:-2]), int(event.group[1:])  # p0#1, g1
            if event.kind == "send":
                labels[event.message] = unsaid.setdefault((p, g), self.labels(p, g)).pop(0)
            else:
                seen[self.members[p]].append(labels[event.message])
        return {name: tuple(messages) for name, messages in seen.items()}


class Answering:
    """The program of one member: it says some things once it has delivered others."""

    def __init__(self, script: Script, who: str) -> None:
        self.script = script
        self.due = [said for said in script.picture.says if said.who == who and said.after]

    def answer(
        self, group: GroupId, sender: ProcessId, depth: int, groups: Sequence[GroupId]
    ) -> list[GroupId]:
        """The groups of the messages that were waiting for this one."""
        heard = self.script.labels(sender, group)
        said = [one for one in self.due if one.after in heard]
        for one in said:
            assert heard == [one.after], "who answers knows which message it was"
            self.due.remove(one)
        return [self.script.group(one) for one in said for _ in one.messages]
