"""Frames between two real sockets: order, one write per turn, slow readers, closing."""

from __future__ import annotations

import asyncio
import socket

import pytest

from ordercast.errors import ConfigError, FrameError
from ordercast.transport.tcp import Limits, show_address
from ordercast.wire.frame import pack
from ordercast.wire.opening import pack_opening


def numbered(n: int, size: int = 0) -> bytes:
    return pack(1, 0, 1, b"%d" % n, bytes(size))


async def pair(owner, limits=None):
    """One connection: (accepting owner, its side, connecting owner, its side)."""
    a, b = owner("alice"), owner("bob")
    listener = await a.listen(limits)
    ours = await b.connect(listener, limits=limits or Limits())
    await a.until(lambda a: a.connections)
    return a, a.connections[0], b, ours


def test_ten_thousand_frames_arrive_in_the_order_of_sending(run, owner):
    async def scenario():
        a, _, _, conn = await pair(owner)
        for n in range(10_000):
            conn.send(numbered(n, size=n % 300))
            if n % 100 == 0:
                await asyncio.sleep(0)
        await a.until(lambda a: len(a.frames) == 10_000)
        assert [frame[3] for frame in a.frames] == [b"%d" % n for n in range(10_000)]
        assert all(len(frame[4]) == n % 300 for n, frame in enumerate(a.frames))
        assert a.listeners[0].counters.frames_in == 10_000
        conn.close("done")
        await conn.closed()

    run(scenario())


def test_both_sides_can_send_at_once(run, owner):
    async def scenario():
        a, to_b, b, to_a = await pair(owner)
        for n in range(2_000):
            to_a.send(numbered(n, 50))
            to_b.send(numbered(-n, 50))
        await a.until(lambda a: len(a.frames) == 2_000)
        await b.until(lambda b: len(b.frames) == 2_000)
        assert [frame[3] for frame in b.frames] == [b"%d" % -n for n in range(2_000)]

    run(scenario())


def test_a_frame_larger_than_any_read_arrives_whole(run, owner):
    async def scenario():
        a, _, _, conn = await pair(owner)
        body = bytes(range(256)) * 12_000
        conn.send(pack(1, 0, 1, b"", body))
        await a.until(lambda a: a.frames)
        assert a.frames[0][4] == body

    run(scenario())


def test_all_frames_of_one_turn_leave_in_one_write(run, owner):
    async def scenario():
        a, _, _, conn = await pair(owner)
        before = conn.counters.writes
        for turn in range(5):
            for n in range(100):
                conn.send(numbered(turn * 100 + n))
            await asyncio.sleep(0)
        await a.until(lambda a: len(a.frames) == 500)
        assert conn.counters.writes - before == 5
        assert conn.counters.frames_out == 500 + 1  # and the Hello

    run(scenario())


@pytest.mark.parametrize("pushed_by", ["time", "size", "another"])
def test_frames_that_may_wait_leave_in_one_write_and_never_overtake(run, owner, pushed_by):
    async def scenario():
        a, _, _, conn = await pair(owner)
        seconds = 0.05 if pushed_by == "time" else 3600.0
        before = conn.counters.writes
        for n in range(20):
            conn.send_within(numbered(n), seconds, enough=10_000)
            await asyncio.sleep(0)
        assert conn.counters.writes == before  # nothing has left
        if pushed_by == "size":
            conn.send_within(numbered(20, size=10_000), seconds, enough=10_000)
        elif pushed_by == "another":
            conn.send(numbered(20))
        expected = 20 if pushed_by == "time" else 21
        await a.until(lambda a: len(a.frames) == expected)
        assert [frame[3] for frame in a.frames] == [b"%d" % n for n in range(expected)]
        assert conn.counters.writes == before + 1

    run(scenario())


def test_what_waits_leaves_before_the_end_and_is_dropped_by_an_abort(run, owner):
    async def scenario():
        a, _, _, to_a = await pair(owner)
        to_a.send_within(numbered(1), 3600.0, enough=10_000)
        to_a.close("done")
        await a.until(lambda a: a.frames)
        to_a.send_within(numbered(2), 3600.0, enough=10_000)
        assert to_a.buffered == 0
        a, _, _, to_a = await pair(owner)
        to_a.send_within(numbered(1), 3600.0, enough=10_000)
        to_a.abort("enough")
        await a.until(lambda a: a.closed)
        assert a.frames == [] and to_a._gathering is None

    run(scenario())


def test_what_was_sent_before_close_still_arrives_and_what_comes_later_is_dropped(run, owner):
    async def scenario():
        a, _, _, conn = await pair(owner)
        conn.send(numbered(1))
        conn.close("done")
        conn.send(numbered(2))
        await a.until(lambda a: a.closed)
        assert [frame[3] for frame in a.frames] == [b"1"]
        assert conn.buffered == 0

    run(scenario())


def test_closing_twice_is_closing_once_and_the_first_reason_stays(run, owner):
    async def scenario():
        a, accepted, b, conn = await pair(owner)
        conn.close("first")
        conn.close("second")
        conn.abort("third")
        assert await conn.closed() == "first"
        conn.close("after the end")
        assert await conn.closed() == "first"
        await a.until(lambda a: a.closed)
        assert b.closed == ["first"]
        assert a.closed == ["closed by the peer"]
        assert await accepted.closed() == "closed by the peer"

    run(scenario())


def test_a_peer_that_dies_in_the_middle_of_a_frame_is_told_as_such(run, owner):
    async def scenario():
        a, conn, raw = await owner.silent_reader(Limits())
        raw.sendall(numbered(1, 100)[:50])
        await asyncio.to_thread(raw.shutdown, socket.SHUT_WR)
        assert await conn.closed() == "closed by the peer in the middle of a frame"
        assert a.frames == []

    run(scenario())


def test_a_peer_that_does_not_read_is_seen_and_seen_again_when_it_reads(run, owner):
    async def scenario():
        limits = Limits(high_water=300_000, low_water=100_000)
        a, conn, raw = await owner.silent_reader(limits)
        sent = 0
        while "congested" not in a.told:
            conn.send(numbered(sent, 50_000))
            sent += 1
            await asyncio.sleep(0)
        assert conn.buffered >= 300_000
        assert a.listeners[0].counters.congested == 1
        assert "writable" not in a.told

        def read(total: int) -> None:
            while total > 0:
                total -= len(raw.recv(65536))

        frames = sum(len(numbered(n, 50_000)) for n in range(sent))
        await asyncio.to_thread(read, len(pack_opening(a.listeners[0].hello)) + frames)
        await a.until(lambda a: "writable" in a.told)
        assert conn.buffered <= 100_000

    run(scenario())


def test_bytes_queued_in_this_turn_count_as_buffered(run, owner):
    async def scenario():
        _, _, _, conn = await pair(owner)
        frame = numbered(1, 1000)
        conn.send(frame)
        conn.send(frame)
        assert conn.buffered == 2 * len(frame)

    run(scenario())


def test_a_peer_that_never_reads_is_given_up_at_the_limit(run, owner):
    async def scenario():
        limits = Limits(high_water=100_000, low_water=0, max_buffered=2_000_000)
        a, conn, _ = await owner.silent_reader(limits)
        while not conn.reason:
            conn.send(numbered(0, 100_000))
            assert conn.buffered < 4_000_000
            await asyncio.sleep(0)
        await a.until(lambda a: a.closed)
        assert a.closed == ["the peer does not read: more than 2000000 bytes wait"]

    run(scenario())


def test_closing_towards_a_peer_that_never_reads_ends_in_bounded_time(run, owner):
    async def scenario():
        limits = Limits(high_water=100_000, low_water=0, close_timeout_s=0.05)
        a, conn, _ = await owner.silent_reader(limits)
        while "congested" not in a.told:
            conn.send(numbered(0, 100_000))
            await asyncio.sleep(0)
        conn.close("we leave")
        assert await conn.closed() == "we leave"

    run(scenario())


def test_a_peer_that_stops_sending_and_never_reads_is_gone_in_bounded_time(run, owner):
    async def scenario():
        limits = Limits(high_water=100_000, low_water=0, close_timeout_s=0.05)
        a, conn, raw = await owner.silent_reader(limits)
        while "congested" not in a.told:
            conn.send(numbered(0, 100_000))
            await asyncio.sleep(0)
        raw.shutdown(socket.SHUT_WR)
        assert await conn.closed() == "closed by the peer"

    run(scenario())


def test_an_owner_that_cannot_decode_a_frame_has_that_connection_closed(run, owner):
    async def scenario():
        a, _, b, conn = await pair(owner)
        witness = await owner("carol").connect(a.listeners[0])

        def reject(_):
            raise FrameError("no header has the tag 9 on this channel")

        a.at_frames = reject
        conn.send(numbered(1))
        await a.until(lambda a: a.closed)
        await b.until(lambda b: b.closed)
        assert a.closed == ["FrameError: no header has the tag 9 on this channel"]
        assert a.listeners[0].counters.faults == 1
        assert a.connections[0].fault is not None
        assert not witness.reason

    run(scenario())


def test_a_frame_over_the_limit_is_our_own_mistake_when_we_send_it(run, owner):
    async def scenario():
        _, _, _, conn = await pair(owner, Limits(max_frame=1000))
        with pytest.raises(AssertionError):
            conn.send(numbered(1, 1000))

    run(scenario())


def test_limits_that_contradict_each_other_are_refused_with_both_values():
    with pytest.raises(ConfigError, match="low_water=2, high_water=1"):
        Limits(low_water=2, high_water=1)
    with pytest.raises(ConfigError, match="max_frame=18"):
        Limits(max_frame=18)


def test_an_ipv6_address_is_shown_with_brackets():
    assert show_address(("::1", 7700)) == "[::1]:7700"
    assert show_address(("127.0.0.1", 7700)) == "127.0.0.1:7700"
