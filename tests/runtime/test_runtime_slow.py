"""A member whose program does not read: it is named, and the group may go on without it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager, suppress

import pytest

import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime import slow_readers
from ordercast.runtime.control import NotReading
from ordercast.runtime.diagnosis.diagnose import diagnose
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.inbox import Inbox
from ordercast.service.metrics import render

LIMITS = {"max_message": 1000, "window_bytes": 20_000, "frame_bytes": 2000, "slow_seconds": 0.4}


async def until(condition) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def slow_members(node: oc.Node, group: str = "g") -> set[str]:
    return set(node.stats()["groups"][group]["slow_members"])


@asynccontextmanager
async def flooded(slow: str | None = None, **how):
    """alice reads and sends without end, bob is in the group and never reads."""
    how = how or {"order": "total"}
    async with (
        oc.Node("alice", bootstrap=True, **LIMITS) as alice,
        oc.Node("bob", seeds=[alice.address], **LIMITS) as bob,
    ):
        groups = [await node.join("g", slow=slow, **how) for node in (alice, bob)]
        taken: list[oc.Message | oc.View] = []

        async def read() -> None:
            async for event in alice:
                taken.append(event)

        async def send() -> None:
            with suppress(oc.GroupClosed):
                while True:
                    await groups[0].multicast(bytes(1000))

        tasks = [asyncio.ensure_future(read()), asyncio.ensure_future(send())]
        try:
            yield alice, bob, groups, taken
        finally:
            for task in tasks:
                task.cancel()


def said(caplog: pytest.LogCaptureFixture, *words: str) -> bool:
    return any(
        record.levelno == logging.WARNING and all(w in record.getMessage() for w in words)
        for record in caplog.records
    )


async def test_a_member_that_does_not_read_is_named_at_both_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with flooded() as (alice, bob, _, _):
        await until(lambda: said(caplog, "program of bob#1 has taken nothing of group 'g'"))
        await until(lambda: said(caplog, "multicasts to group 'g' have waited", "bob has taken"))
        assert slow_members(alice) == slow_members(bob) == {"bob"}
        assert 'ordercast_slow_member_seconds{group="g",member="bob"}' in render(alice.stats())
        answer = await oc.query_status(alice.address)
        assert set(answer["stats"]["groups"]["g"]["slow_members"]) == {"bob"}
        diagnosis = Diagnosis()
        await diagnose([alice.address], Subject(), diagnosis)
        (finding,) = [f for f in diagnosis.findings if f.code == "slow_member"]
        assert finding.where == "bob" and "group 'g'" in finding.seen
        assert set(alice.stats()["groups"]["g"]["members"]) == {"alice", "bob"}  # all wait


async def test_a_member_that_reads_again_is_named_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slow_readers, "SAID_AGAIN", 10**6)  # nothing is forgotten by itself
    async with flooded() as (alice, bob, _, taken):
        await until(lambda: slow_members(alice) == {"bob"})
        before = len(taken)

        async def read() -> None:
            async for _ in bob:
                pass

        task = asyncio.ensure_future(read())
        await until(lambda: not slow_members(alice) and not slow_members(bob))
        await until(lambda: len(taken) > before + 50)
        task.cancel()


async def test_a_program_that_takes_one_event_after_the_other_is_not_slow() -> None:
    async with flooded() as (alice, bob, _, _):
        looks, seen = bob._presence.slow_readers, set()
        async for _ in bob:
            before = looks._looks
            await until(lambda before=before: looks._looks > before)  # one event for each look
            seen |= slow_members(alice) | slow_members(bob)
            if looks._looks > 30:
                break
        assert seen == set()


async def test_an_inbox_counts_looks_at_which_nothing_was_taken_of_what_waits() -> None:
    inbox: Inbox[list[int]] = Inbox("a stream", list, 1)

    def looked() -> int:
        inbox.look()
        return inbox.idle_looks

    assert [looked(), looked(), looked()] == [0, 0, 0]  # nothing waits
    for number in range(3):
        inbox.put([number, -number])
    assert [looked(), looked()] == [1, 2]
    await inbox.next_event()  # opens a batch of two
    assert [looked(), looked()] == [0, 1]
    await inbox.next_event()
    assert [looked(), looked()] == [0, 1]
    await inbox.next_batch()
    assert [looked(), looked()] == [0, 1]
    await inbox.next_batch()  # the last
    assert [looked(), looked()] == [0, 0]


async def test_a_program_that_reads_none_of_many_groups_is_told_of_in_few_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with oc.Node("alice", bootstrap=True, **LIMITS) as alice:
        groups = [await alice.join(f"g{number}", order="total") for number in range(20)]

        async def send(group: oc.Group) -> None:
            while True:
                await group.multicast(bytes(1000))

        tasks = [asyncio.ensure_future(send(group)) for group in groups]
        slow = alice._presence.slow_readers
        await until(lambda: sum(one.warned for one in slow._waiting.values()) == 20)
        lines = [
            r.getMessage() for r in caplog.records if r.name == "ordercast.runtime.slow_readers"
        ]
        assert len(lines) < 20  # two, unless a look fell between the first and the last group
        assert max(map(len, lines)) < 500
        assert "alice has taken nothing of groups 'g0', 'g1', 'g2' and 17 more" in lines[-1]
        for task in tasks:
            task.cancel()


async def test_what_is_not_said_again_is_forgotten() -> None:
    async with flooded() as (alice, bob, _, _):
        await until(lambda: slow_members(alice) == {"bob"})
        bob._presence.slow_readers.stop()
        await until(lambda: not alice._presence.slow_readers._told)
        assert slow_members(alice) == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_with_exclude_the_member_leaves_and_the_senders_go_on(protocol: str) -> None:
    async with flooded("exclude", protocol=protocol) as (alice, bob, (_, group), taken):
        await until(lambda: alice.stats()["groups"]["g"]["members"] == ["alice"])
        before = len(taken)
        await until(lambda: len(taken) > before + 50)
        with pytest.raises(oc.TooSlow, match=r"left group 'g'.*taken nothing.*slow='exclude'"):
            await until_raised(group)
        events = []
        async for event in bob:  # what was delivered before, and then the view without bob
            events.append(event)
            if isinstance(event, oc.View) and event.left == ("bob",):
                break
        assert sum(isinstance(event, oc.Message) for event in events) > 0
        again = await bob.join("g", protocol=protocol)
        assert set(again.members) == {"alice", "bob"}


async def until_raised(group: oc.Group) -> None:
    while True:
        await group.multicast(b"x")
        await asyncio.sleep(0.01)


async def test_a_stream_of_the_group_alone_raises_after_the_rest() -> None:
    async with flooded("exclude") as (alice, bob, (_, group), _):
        stream = aiter(group)
        await until(lambda: alice.stats()["groups"]["g"]["members"] == ["alice"])
        await until(lambda: not bob.stats()["groups"])
        with pytest.raises(oc.TooSlow):
            while True:
                await anext(stream)


async def test_the_policy_is_fixed_by_the_first_member() -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        await alice.join("waits", order="total")
        await alice.join("excludes", order="total", slow="exclude")
        with pytest.raises(oc.OrderMismatch, match=r"slow 'wait'.*slow 'exclude'"):
            await bob.join("waits", order="total", slow="exclude")
        with pytest.raises(oc.OrderMismatch, match=r"slow 'exclude'.*slow 'wait'"):
            await bob.join("excludes", order="total", slow="wait")
        await bob.join("excludes", order="total")
        await bob.join("waits", order="total", slow="wait")
        assert bob.stats()["groups"]["excludes"]["slow"] == "exclude"
        with pytest.raises(ValueError, match="slow='drop' is unknown; use 'wait', 'exclude'"):
            await bob.join("other", order="total", slow="drop")


async def test_a_guest_learns_who_holds_it_up() -> None:
    async with (
        oc.Node("alice", bootstrap=True, **LIMITS) as alice,
        oc.Node("ticker", seeds=[alice.address], **LIMITS) as ticker,
    ):
        await alice.join("g", order="total")

        async def send() -> None:
            while True:
                await ticker.send_to("g", bytes(1000))

        sending = asyncio.ensure_future(send())
        await until(lambda: ticker.stats()["guest_of"].get("g", {}).get("slow_members"))
        assert set(ticker.stats()["guest_of"]["g"]["slow_members"]) == {"alice"}
        sending.cancel()


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 1e30])
async def test_a_time_that_cannot_be_is_the_fault_of_its_sender(seconds: float) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address], rejoin=False) as bob,
    ):
        for node in (alice, bob):
            await node.join("g", order="total")
        bob._presence.peers.tell(alice._presence.me.pid, NotReading("g", seconds))
        await until(lambda: alice.stats()["peer_faults"])
        assert alice._presence.error is None


async def test_what_a_node_says_of_groups_that_it_is_not_in_is_not_kept() -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        await alice.join("g", order="total")
        for group in ("g", "unknown"):
            bob._presence.peers.tell(alice._presence.me.pid, NotReading(group, 5.0))
        await bob.join("after", order="total")
        await alice.join("after", order="total")
        assert alice._presence.slow_readers._told == {} and slow_members(alice) == set()
        assert alice.stats()["peer_faults"] == 0
