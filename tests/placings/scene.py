"""A scene: who is there, what is done, and whom a crash strikes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from ordercast.core.events import Event, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.membership.cluster_headers import Part
from ordercast.membership.nodes import GroupEntry, NodeEntry
from ordercast.membership.standing import Ask, ClusterOptions, Command, Found, GetIn, Migrate
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.stack.clustered import ClusteredStack

Fate = Literal["crash", "slow"]
"""Its process ends; or the others only believe so, and it goes on"""

SETTLING_ROUNDS = 4  # of timers, before the scene begins
QUIET = ClusterOptions(balance=False)


class Group(msgspec.Struct, frozen=True):
    """A group as it stands when the scene begins."""

    members: tuple[ProcessId, ...]
    sequencer: ProcessId
    guests: tuple[ProcessId, ...] = ()


class Doing(msgspec.Struct, frozen=True):
    """One process does this. Its messages stay in order; all else may come at any time."""

    process: ProcessId
    what: Event | Command
    after: str = ""  # not before it has delivered this message


class Scene(msgspec.Struct, frozen=True):
    """Everything that decides what can happen."""

    protocol: type[SequencingService]
    nodes: tuple[ProcessId, ...]  # the first one coordinates
    groups: dict[GroupId, Group]
    doings: tuple[Doing, ...]
    struck: ProcessId | None = None
    fate: Fate = "crash"
    daemons: tuple[ProcessId, ...] = ()  # sequencers that are in no group
    options: Options = Options()
    marks: bool = False  # words of what is stable arrive, too; nobody waits for them

    @property
    def acting(self) -> ProcessId:
        """Who ends the node view when the crash is seen."""
        return next(p for p in self.nodes if p != self.struck)


def says(process: ProcessId, g: GroupId, text: str, *, after: str = "") -> Doing:
    """A message."""
    return Doing(process, Multicast(g, text.encode()), after)


def joins(process: ProcessId, g: GroupId, protocol: type[SequencingService]) -> Doing:
    """A wish to be let in."""
    return Doing(process, Ask(entry_of(g, protocol), "member"))


def moves(coordinator: ProcessId, g: GroupId, to: ProcessId) -> Doing:
    """The group, and all that must be with it, is to be numbered elsewhere."""
    return Doing(coordinator, Migrate(g, to))


def entry_of(g: GroupId, protocol: type[SequencingService]) -> GroupEntry:
    """How a group is known to all."""
    declared = protocol.declaration
    return GroupEntry(g, f"g{g}", declared.order, declared.name, 0)


def first_stacks(scene: Scene) -> dict[ProcessId, ClusteredStack]:
    """The nodes of a scene, all in one view, with all groups in place and nothing under way."""
    stage = _Stage(scene)
    stage.gather()
    for g, group in scene.groups.items():
        for p in group.members:
            stage.let_in(g, p, "member")
        for p in group.guests:
            stage.let_in(g, p, "guest")
    for g, group in scene.groups.items():
        stage.do(scene.nodes[0], Migrate(g, group.sequencer))
    stage.settle()
    for g, group in scene.groups.items():
        assert stage.stacks[group.sequencer].leads(g), f"group {g} is not at {group.sequencer}"
    return stage.stacks


class _Stage:
    """Before the scene begins: everything arrives in the order of sending."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        pages = {scene.protocol.declaration.name: scene.protocol}
        self.stacks = {
            p: ClusteredStack(
                NodeEntry(p, f"n{p}", 1, sequencer=p in scene.daemons),
                pages,
                cluster_options=QUIET,
                network="N1",
                cluster_network="N2",
                options=scene.options,
            )
            for p in scene.nodes
        }
        self.flight: deque[tuple[ProcessId, Receive]] = deque()
        self.timers: dict[ProcessId, set[tuple[GroupId, str]]] = {p: set() for p in scene.nodes}

    def gather(self) -> None:
        first, *others = self.scene.nodes
        self.do(first, Found())
        for p in others:
            self.do(p, GetIn((first,)))
        self.settle()

    def let_in(self, g: GroupId, p: ProcessId, part: Part) -> None:
        entry = entry_of(g, self.scene.protocol)
        self.stacks[p].open_group(entry)
        self.do(p, Ask(entry, part))

    def do(self, p: ProcessId, event: Event | Command) -> None:
        self._step(p, event)
        while self.flight:
            self._step(*self.flight.popleft())

    def settle(self) -> None:
        for _ in range(SETTLING_ROUNDS):
            for p in self.scene.nodes:
                for g, name in sorted(self.timers[p]):
                    self.timers[p].discard((g, name))
                    self.do(p, Timer(g, name))

    def _step(self, p: ProcessId, event: Event | Command) -> None:
        out = self.stacks[p].step((event,))
        assert not out.faults, out.faults
        for to, g, era, header, payload in out.transmits:
            self.flight += ((q, Receive(p, g, era, header, payload)) for q in to)
        self.timers[p] |= running(out.timers)


def running(timers: Iterable[tuple[GroupId, str, int]]) -> set[tuple[GroupId, str]]:
    """Those that were set."""
    return {(g, name) for g, name, delay_ms in timers if delay_ms >= 0}


def views_of(stack: ClusteredStack, groups: Mapping[GroupId, Group]) -> list[View]:
    """The views of the groups that this node is in."""
    views = (stack.view(g) for g in groups)
    return [view for view in views if view is not None and stack.me in view.members]
