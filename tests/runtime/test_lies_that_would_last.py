"""What somebody says once must not close the cluster to others for ever: names, starts, numbers."""

from __future__ import annotations

import pytest

import ordercast as oc
from ordercast.membership.node_view import NodeEntry
from ordercast.runtime import node_directory
from ordercast.runtime.control import Admitted, Apply, Enter, Refused
from ordercast.runtime.coordination import MAX_UNSEEN
from ordercast.runtime.node_directory import NodeDirectory
from ordercast.runtime.options import NodeOptions
from ordercast.views import target
from ordercast.views.plausible import MAX_GROUP
from tests.strangers import Stranger

SHARED = NodeOptions().shared()


@pytest.mark.parametrize("after", [-1, MAX_UNSEEN + 1, 2**40, 2**53 - 2, 2**63])
async def test_a_number_of_starts_that_cannot_be_is_refused(after: int) -> None:
    async with oc.Node("alice", bootstrap=True) as alice, Stranger.at(alice) as stranger:
        await stranger.greet("bob")
        stranger.say(Apply(SHARED, after))
        answer = await stranger.heard()
        assert isinstance(answer, Refused) and answer.reason == "incarnation"
        async with oc.Node("bob", seeds=[alice.address]) as bob:
            assert bob.incarnation == 1


async def test_what_an_applicant_said_of_itself_does_not_outlive_the_coordinator() -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        async with Stranger.at(alice) as stranger:
            await stranger.greet("carol")
            stranger.say(Apply(SHARED, MAX_UNSEEN))
            await stranger.heard()
        await alice.aclose()
        async with oc.Node("dave", seeds=[bob.address]) as dave:
            assert dave.incarnation == 1


async def test_starts_that_this_cluster_did_not_see_are_believed() -> None:
    async with oc.Node("alice", bootstrap=True) as alice, Stranger.at(alice) as stranger:
        await stranger.greet("bob")
        stranger.say(Apply(SHARED, 7))
        answer = await stranger.heard()
        assert isinstance(answer, Admitted) and answer.me.incarnation == 8


async def test_those_who_were_let_in_and_did_not_come_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_directory, "MAX_PAST", 3)
    async with oc.Node("alice", bootstrap=True) as alice:
        known = alice._presence.directory
        for number in range(8):
            async with Stranger.at(alice) as phantom:
                await phantom.greet(f"phantom{number}")
                answer = await phantom.apply()
                assert isinstance(answer, Admitted) and not answer.past
                alice._presence.coordination.give_up(answer.me.pid)
        assert len(known.expected) <= 3 and len(known.names) <= 1 + 3
        assert set(known.incarnations) == {"alice"} and known.floor == 0
        async with oc.Node("bob", seeds=[alice.address]) as bob:
            assert bob._presence.me.pid == 9  # no number is given twice


def test_of_nodes_that_are_gone_the_last_names_are_kept_and_no_incarnation_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_directory, "MAX_PAST", 2)
    known = NodeDirectory()
    for pid in range(6):
        known.meet(NodeEntry(pid, f"worker{pid}", pid + 1))
        known.remove(pid)
    assert known.past == (("worker3", 4), ("worker4", 5), ("worker5", 6))  # one was here still
    assert known.last_incarnation("worker5") == 6
    assert known.last_incarnation("worker0") == known.floor == 3


async def test_a_newcomer_learns_how_often_forgotten_names_were_started() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        alice._presence.directory.floor = 40
        async with oc.Node("bob", seeds=[alice.address]) as bob:
            assert bob.incarnation == 41
            assert bob._presence.directory.floor == 40


async def test_the_highest_number_of_a_group_does_not_use_up_those_below_it() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        first = await alice.join("first", order="total")
        alice._presence.engine.stack.top_group = MAX_GROUP
        second = await alice.join("second", order="total")
        assert first.members == second.members == ("alice",)
        assert sorted(alice._presence.engine.stack.rows) == [1, 2]


async def test_groups_that_are_gone_do_not_count_in_the_limit_of_groups() -> None:
    async with oc.Node("alice", bootstrap=True, max_groups=2) as alice:
        await alice.join("first", order="total")
        alice._presence.engine.stack.top_group = 2000  # many have come and gone
        await alice.join("second", order="total")
        with pytest.raises(oc.UsageError, match="max_groups=2"):
            await alice.join("third", order="total")


async def test_groups_that_are_only_asked_about_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(target, "MAX_OFFERED", 3)
    async with oc.Node("alice", bootstrap=True) as alice:
        names = alice._presence.cluster_membership.requests.names
        for number in range(8):
            names.answer(enter(number))
        assert len(alice._presence.engine.stack.changes.target.offered) == 3
        await alice.join("a-real-one", order="total")


def enter(number: int) -> Enter:
    return Enter(number, f"never-entered-{number}", "total", None)
