"""When a group is left, or a node was cut off: what counts first, and what opens again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.errors import GroupClosed, NotPrimary
from ordercast.runtime.cluster_membership import ClusterMembership
from ordercast.runtime.receipt import Progress
from ordercast.runtime.sending import Sending
from ordercast.runtime.window import NodeWindow, Window
from ordercast.views.groups import GroupEntry

GROUP = GroupEntry(5, "prices", "total", "sequencing", 1)


def sending() -> Sending:
    """One that lacks what is not asked of it here."""
    made = Sending.__new__(Sending)
    made.group = GROUP
    made.closed = None
    made.progress = Progress(lambda: False)
    made.window = Window(100, 10, NodeWindow(100, 10))
    made.frames_sent = 0
    loop = asyncio.get_running_loop()
    made.installed, made.gone = loop.create_future(), loop.create_future()
    return made


class Ship(ClusterMembership):
    """Writes down what is asked of the engine."""

    def __init__(self) -> None:
        self.said: list[str] = []
        engine = SimpleNamespace(
            step=lambda events: self.said.extend(type(event).__name__ for event in events),
            leave=lambda gid: self.said.append("close"),
        )
        self._presence: Any = SimpleNamespace(engine=engine)


async def turns() -> None:
    """Everything that can go on by now has gone on."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_leave_waits_until_all_that_was_sent_has_its_place() -> None:
    ship, member = Ship(), sending()
    member.installed.set_result(None)
    member.frames_sent = 3
    leaving = asyncio.ensure_future(ship.leave(member))
    for ordered in (0, 1, 2):
        member.progress.ordered.reach(ordered)
        await turns()
        assert ship.said == []
    member.progress.ordered.reach(3)
    await turns()
    assert ship.said == ["Leave"]
    assert not leaving.done()
    member.gone.set_result(None)
    await leaving


async def test_who_was_not_let_in_waits_for_nothing_before_it_leaves() -> None:
    ship, member = Ship(), sending()
    member.frames_sent = 3
    leaving = asyncio.ensure_future(ship.leave(member))
    await turns()
    assert ship.said == ["Leave", "close"]
    member.gone.set_result(None)
    await leaving


async def test_a_group_that_was_left_while_the_node_was_cut_off_stays_closed() -> None:
    member, cut_off = sending(), NotPrimary(4, ("bob#1",))
    member.block(cut_off)
    assert member.closed is cut_off and not member.has_ended
    member.close_for_senders()
    member.unblock(cut_off)
    assert member.has_ended
    with pytest.raises(GroupClosed, match="'prices' was left"):
        member.check_open()


async def test_who_is_cut_off_is_in_its_groups_and_who_left_is_not() -> None:
    member, cut_off = sending(), NotPrimary(4, ("bob#1",))
    member.check_not_ended()
    member.block(cut_off)
    member.check_not_ended()
    with pytest.raises(NotPrimary):
        member.check_open()
    member.close_for_senders()
    with pytest.raises(GroupClosed):
        member.check_not_ended()


async def test_what_was_closed_before_the_node_was_cut_off_stays_closed() -> None:
    member, cut_off = sending(), NotPrimary(4, ("bob#1",))
    member.close_for_senders()
    member.block(cut_off)
    member.unblock(cut_off)
    assert isinstance(member.closed, GroupClosed)


async def test_a_reason_that_has_passed_opens_nothing_that_a_newer_one_closes() -> None:
    member, first, second = sending(), NotPrimary(4, ("bob#1",)), NotPrimary(5, ("carol#1",))
    member.block(first)
    member.block(second)
    member.unblock(first)
    assert member.closed is second
    member.unblock(second)
    member.check_open()
