"""Invariants of a node about its groups and the directory: each sees a machine that breaks it."""

from __future__ import annotations

import msgspec
import pytest

from ordercast.process.commands import Drain, Join, Leave, Migrate
from ordercast.process.process import Process
from ordercast.protocols.registry import PROTOCOLS
from ordercast.views.groups import GroupEntry
from ordercast.views.target import Target
from tests.fuzzing.few_nodes import FewNodes

replace = msgspec.structs.replace


class NeverTells(Process):
    """The directory takes up a change, and the machine of the group does not hear of it."""

    def begin(self, number, nexts):
        if self.changes.directory.rows[1].era < 3:
            super().begin(number, nexts)


class TellsOfAnotherView(Process):
    """The machine hears of the view before."""

    def begin(self, number, nexts):
        late = [replace(e, view=replace(e.view, number=e.view.number - 1)) for e in nexts]
        super().begin(number, late)


class LeavesInTheDirectoryAlone(Process):
    """Whoever is out of a row goes on in the view."""

    def begin(self, number, nexts):
        said = [e for e in nexts if self.me in e.view.members]
        super().begin(number, said)


class OpensNothing(Process):
    """The group that this node is to number is not opened."""

    def begin(self, number, nexts):
        super().begin(number, [e for e in nexts if self.me in e.view.members])


class OpensWithoutTheView(Process):
    """A group that the directory knows is opened as if it were new."""

    def open_group(self, entry):
        rows, self.changes.directory.rows = self.changes.directory.rows, {}
        super().open_group(entry)
        self.changes.directory.rows = rows


class MovesWithoutThePlacement(Target):
    """What is moved by hand stays where it was for whoever places groups."""

    def _move(self, directory, placement, groups, to):
        for g in groups:
            self._aim(directory, g, leader=to)


class ForgetsPlaces(Target):
    """A change that is installed has no place in the weights."""

    def installed(self, directory, rows, pages):
        super().installed(directory, rows, pages)
        for placement in self.placements.values():
            for row in rows:
                placement.forget(row.entry.gid)


def cluster(protocol, kind=Process, target=Target, count=3):
    """Three nodes in one group; from now on they are of this kind."""
    order = PROTOCOLS[protocol].declaration.order
    made = FewNodes(count, GroupEntry(1, "g", order, protocol, 0))
    for node in made.nodes.values():
        node.__class__ = kind
        node.changes.target.__class__ = target
    return made


def leave(made):
    made.step(1, Leave(1))
    made.carry()


def move(made):
    made.step(1, Migrate(1, 2))
    made.carry()


def join_another(made):
    """Node 0 founds a second group, which 2 numbers; node 1 opens it, and is not let in yet."""
    entry = replace(made.nodes[0].rows[1].entry, gid=2, name="h")
    made.step(0, Join(entry, "member"))
    made.carry()
    made.step(1, Join(entry, "member"))
    made.carry()


def number_for_others(made):
    """Node 2, which is in no group, numbers one."""
    made.step(2, Leave(1))
    made.carry()
    for p in (0, 1):
        made.step(p, Drain(p))
    made.carry()


WRONG = [  # what happens, protocol, kind, target, what is seen
    (leave, "fifo", NeverTells, Target, "of the era of the row"),
    (leave, "sequencer_pb", NeverTells, Target, "of the era of the row"),
    (leave, "sequencing_hybrid", NeverTells, Target, "of the era of the row"),
    (leave, "fifo", TellsOfAnotherView, Target, "a view is that of the row"),
    (leave, "sequencing", TellsOfAnotherView, Target, "a view is that of the row"),
    (leave, "fifo", LeavesInTheDirectoryAlone, Target, "where the row says so"),
    (number_for_others, "sequencing_hybrid", OpensNothing, Target, "where the row says so"),
    (join_another, "sequencing_hybrid", OpensWithoutTheView, Target, "is known"),
    (move, "sequencing_hybrid", Process, MovesWithoutThePlacement, "where it is placed"),
    (move, "sequencing_hybrid", Process, ForgetsPlaces, "has a place"),
]


@pytest.mark.parametrize(
    ("happens", "protocol", "kind", "target", "seen"),
    WRONG,
    ids=[f"{p}-{k.__name__}-{t.__name__}" for _, p, k, t, _ in WRONG],
)
def test_a_node_whose_groups_do_not_stand_as_the_directory_says_is_noticed(
    happens, protocol, kind, target, seen
):
    with pytest.raises(AssertionError, match=seen):
        happens(cluster(protocol, kind, target))


@pytest.mark.parametrize("happens", [leave, move, join_another, number_for_others])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_groups_of_a_right_node_stand_as_the_directory_says_after_every_step(happens, protocol):
    made = cluster(protocol)
    happens(made)
    assert made.nodes[0].changes.done > 1 and not made.flight
