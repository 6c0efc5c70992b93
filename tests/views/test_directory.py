"""Groups that nobody is in are remembered, up to a limit."""

from __future__ import annotations

import pytest

from ordercast.process.commands import Join, Leave
from ordercast.views import directory as module
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Absent, Row
from tests.fuzzing.few_nodes import FewNodes


def row(g, era=1, members=(), absent=()):
    return Row(GroupEntry(g, f"g{g}", "hybrid", "seq", 7), era, era, members, (), 0, absent)


def test_the_oldest_groups_without_members_are_forgotten_and_numbers_rise(monkeypatch):
    monkeypatch.setattr(module, "MAX_EMPTY", 2)
    directory = Directory()
    directory.put(row(1, era=9, absent=(Absent("a", 1, 9),)))
    directory.put(row(2, era=7))
    directory.put(row(3, era=5, members=(1,)))
    directory.put(row(4, era=6))
    assert directory.prune() == [4]
    assert set(directory.rows) == {1, 2, 3}
    assert directory.floor == 6
    directory.invariants()


def test_a_group_that_was_forgotten_begins_above_all_that_it_may_have_had():
    from ordercast.membership.node_view import NodeEntry
    from ordercast.views.headers import WantIn
    from ordercast.views.target import Target
    from tests.views.oracle_cluster import ORDERS

    directory, target = Directory(), Target(0, 1, 1 << 30)
    directory.floor = 6
    pages = {"seq": ORDERS["hybrid"]}.__getitem__
    target.begin(directory, (NodeEntry(0, "z", 1), NodeEntry(1, "a", 1)), {}, pages)
    target.want_in(directory, 1, WantIn(row(4).entry, "member"), pages)
    founded = target.next_rows(directory, (), pages)[4]
    assert (founded.number, founded.era) == (7, 7)


@pytest.mark.parametrize(("order", "protocol"), [("total", "sequencing"), ("causal", "cbcast")])
def test_whoever_numbered_a_group_that_is_forgotten_closes_it(order, protocol, monkeypatch):
    """Also one that is forgotten in the change in which its last member went: the others have
    come to higher eras."""
    monkeypatch.setattr(module, "MAX_EMPTY", 2)
    cluster = FewNodes(2)
    for g in range(2, 9):
        for _ in range(4 if g < 4 else 1):
            cluster.step(1, Join(GroupEntry(g, f"g{g}", order, protocol, 0), "member"))
            cluster.carry()
            cluster.step(1, Leave(g))
            cluster.carry()
        cluster.nodes[1].close(g)
    for node in cluster.nodes.values():
        assert len(node.rows) == 3 and node.groups.machines.keys() <= node.rows.keys()
        assert node.groups.entries.keys() <= node.rows.keys()
    assert not cluster.faults


def test_thousands_of_empty_groups_are_forgotten_without_looking_at_all_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A member wished into thousands of groups and is gone: all nodes forget them in one step."""

    class Looked(dict[int, Row]):
        times = 0

        def __getitem__(self, g: int) -> Row:
            self.times += 1
            return super().__getitem__(g)

    monkeypatch.setattr(module, "MAX_EMPTY", 10)
    directory, count = Directory(), 1000
    directory.rows = looked = Looked()
    for g in range(count):
        directory.put(row(g))
    assert len(directory.prune()) == count - 10
    assert looked.times <= 10 * count
