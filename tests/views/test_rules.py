"""Rules that random runs need rarely: each by its smallest schedule, with the rule and without."""

from __future__ import annotations

import pytest

from ordercast.core.changing import NextEra, NumbersEnd
from ordercast.core.events import Receive, View
from ordercast.membership.node_view import NodeEntry
from ordercast.protocols.sequencing.headers import Accept, Request
from ordercast.views.changes import Changes
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Row, WantIn
from ordercast.views.states import Lead
from ordercast.views.target import Target
from tests.views import wrong_machines as wrong
from tests.views.explorer import explore


def begin(machine, number, *views, end=0):
    machine.change(number, [NextEra(view, NumbersEnd(end, 2)) for view in views])


def views_delivered(machine):
    return [item.group for item in machine.out.deliveries if isinstance(item, View)]


@pytest.mark.parametrize(("faults", "named"), [((), True), ((wrong.NoFence,), False)])
def test_what_follows_a_group_that_went_elsewhere_names_its_new_era(faults, named):
    """Groups 1 and 2 met here; 1 lost a member, and another node numbers it."""
    machine = wrong.page("causal-total", *faults)(2)
    begin(machine, 1, View(1, 1, (0, 1), 2), View(2, 1, (0, 1), 2))
    begin(machine, 2, View(1, 2, (0,), 1, era=2))
    machine.out.clear()
    machine.handle(Receive(0, 2, 1, Request(1, 1), b"m"))
    accept = next(header for _, _, _, header, _ in machine.out.transmits)
    assert ((1, 2, 0) in accept.context) == named


@pytest.mark.parametrize(("faults", "early"), [((), []), ((wrong.NoBarrier,), [2])])
def test_views_of_one_change_come_when_all_that_ended_is_delivered(faults, early):
    """A frame of group 1 waits for group 3 while a change ends 1 and 2."""
    machine = wrong.page("hybrid", *faults)(0)
    begin(machine, 1, *(View(g, 1, (0, 1), 2) for g in (1, 2, 3)))
    machine.handle(Receive(2, 1, 1, Accept(1, 1, 1, 1, 0, ((3, 1, 1),)), b"b"))
    machine.out.clear()
    nexts = [NextEra(View(g, 2, (0,), 2, era=2), NumbersEnd(end, 2)) for g, end in ((1, 1), (2, 0))]
    machine.change(2, nexts)
    assert views_delivered(machine) == early
    machine.handle(Receive(2, 3, 1, Accept(1, 1, 1, 1, 0), b"a"))
    frames = [item[4] for item in machine.out.deliveries if not isinstance(item, View)]
    assert frames == [b"a", b"b"]
    assert sorted(views_delivered(machine)) == [1, 2]


@pytest.mark.parametrize(("faults", "delivered"), [((), True), ((wrong.KeepsSeat,), False)])
def test_a_joiner_that_is_not_let_in_waits_for_nothing_of_that_group(faults, delivered):
    machine = wrong.page("hybrid", *faults)(0)
    begin(machine, 1, View(1, 1, (0, 1), 2), View(2, 1, (1,), 2))
    machine.prepare([NextEra(View(2, 2, (1, 0), 2, era=2), NumbersEnd(0, 2))])
    machine.out.clear()
    machine.handle(Receive(2, 1, 1, Accept(1, 1, 1, 1, 0, ((2, 2, 1),)), b"m"))
    assert not machine.out.deliveries
    machine.unprepare()
    assert bool(machine.out.deliveries) == delivered


def test_a_wish_to_be_in_again_outlives_the_coordinator_that_was_told_to_let_go():
    """A node wants out, and in again, and the coordinator crashes: it is in at the end."""
    states, ends, _ = explore("wish", 300)
    assert states and ends


def test_only_the_coordinator_moves_what_a_leaving_node_numbers():
    """The node that leaves takes over in agreement; the view that says so is not in force yet."""
    changes = Changes(2)
    changes.coordinator = 1
    changes.directory.put(Row(GroupEntry(1, "g", "hybrid", "seq", 7), 1, 1, (2,), (), 2))
    assert not changes.unburden(None, 2)
    assert changes.lead is Lead.IDLE and not changes.local


def test_a_member_that_wants_to_be_a_guest_is_no_member_any_more():
    """Its word that it wants out was lost with a coordinator; what it repeats is its new wish."""
    group = GroupEntry(1, "g", "hybrid", "seq", 7)
    directory, target = Directory(), Target(0, 1, 1)
    nodes = tuple(NodeEntry(p, f"p{p}", 1) for p in range(3))
    directory.put(Row(group, 1, 1, (1, 2), (), 0))
    target.begin(directory, nodes, {}, lambda _: wrong.page("hybrid"))
    target.want_in(directory, 2, WantIn(group, "guest"), lambda _: wrong.page("hybrid"))
    rows = target.next_rows(directory, (), lambda _: wrong.page("hybrid"))
    assert rows[1].members == (1,)
