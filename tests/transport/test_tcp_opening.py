"""Who gets in, and what happens to those who should not."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import tracemalloc

import pytest

from ordercast.errors import PeerError
from ordercast.transport.places import Places
from ordercast.transport.tcp import Limits, connect
from ordercast.wire.frame import FIXED, WIRE_VERSION, pack
from ordercast.wire.opening import MAGIC, PREFIX, pack_opening, split_opening

FRAME = pack(1, 0, 1, b"head", b"body")


@contextlib.asynccontextmanager
async def stranger_server(answer: bytes, *, stay: bool = False):
    """A port with something on it that is not one of us; it serves one connection."""
    served = asyncio.Event()

    async def serve(reader, writer):
        await reader.read(1)
        writer.write(answer)
        if stay:
            with contextlib.suppress(ConnectionError):
                await reader.read()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    await served.wait()
    server.close()


def test_each_side_learns_who_the_other_is(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob", proof=b"secret", advertise="10.0.0.2:7700")
        listener = await a.listen()
        conn = await b.connect(listener)
        assert conn.hello.identity == a.hello.identity
        assert conn.peer == listener.address
        await a.until(lambda a: a.connections)
        assert a.connections[0].hello == b.hello
        assert listener.counters.opened == conn.counters.opened == 1

    run(scenario())


def test_a_node_without_advertise_advertises_the_port_it_got(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        listener = await a.listen()
        conn = await b.connect(listener)
        assert conn.hello.advertise == f"127.0.0.1:{listener.address[1]}"

    run(scenario())


def test_frames_sent_while_greeting_come_after_the_hello(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        a.at_hello = lambda conn: conn.send(FRAME)
        b.at_hello = lambda conn: conn.send(FRAME)
        listener = await a.listen()
        await b.connect(listener)
        await a.until(lambda a: a.frames)
        await b.until(lambda b: b.frames)
        assert a.frames == b.frames == [(1, 0, 1, b"head", b"body")]

    run(scenario())


def test_frames_behind_the_hello_in_one_segment_are_taken(run, owner):
    async def scenario():
        a = owner("alice")
        await a.listen()
        _, writer = await a.dial()
        writer.write(pack_opening(owner("bob").hello) + FRAME + FRAME)
        await a.until(lambda a: len(a.frames) == 2)

    run(scenario())


def test_a_hello_that_comes_byte_by_byte_is_taken(run, owner):
    async def scenario():
        a = owner("alice")
        await a.listen()
        _, writer = await a.dial()
        for byte in pack_opening(owner("bob").hello):
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        await a.until(lambda a: a.connections)

    run(scenario())


def test_frames_behind_the_second_half_of_a_hello_are_taken(run, owner):
    async def scenario():
        a = owner("alice")
        listener = await a.listen()
        _, writer = await a.dial()
        opening = pack_opening(owner("bob").hello)
        writer.write(opening[:9])
        while listener.counters.reads == 0:
            await asyncio.sleep(0)
        writer.write(opening[9:] + FRAME)
        await a.until(lambda a: a.frames or a.closed)
        assert a.frames == [(1, 0, 1, b"head", b"body")]

    run(scenario())


def test_another_cluster_is_refused_with_a_reason_that_names_both(run, owner):
    async def scenario():
        a = owner("alice", cluster="red")
        listener = await a.listen()
        with pytest.raises(
            PeerError, match="refused by the peer: this is cluster 'red', not 'blue'"
        ):
            await owner("bob", cluster="blue").connect(listener)
        await a.until(lambda a: a.closed)
        assert a.closed == ["refused: this is cluster 'red', not 'blue'"]
        assert a.connections == []
        assert listener.counters.refused == 1
        assert listener.counters.opened == 0

    run(scenario())


def test_versions_without_overlap_are_refused_with_a_reason_that_names_both(run, owner):
    async def scenario():
        listener = await owner("alice").listen()
        with pytest.raises(PeerError, match="speaks wire versions 1 to 1, not 8 to 9"):
            await owner("bob", version_min=8, version_max=9).connect(listener)

    run(scenario())


def test_an_owner_may_refuse_a_peer_in_its_own_words(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        a.at_hello = lambda conn: conn.refuse("name", "the name 'bob' is taken")
        listener = await a.listen()
        with pytest.raises(PeerError, match="refused by the peer: the name 'bob' is taken"):
            await b.connect(listener)
        assert b.told == []

    run(scenario())


def test_a_stranger_gets_no_hello(run, owner):
    async def scenario():
        a = owner("alice")
        listener = await a.listen()
        reader, writer = await a.dial()
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert listener.counters.faults == 1

    run(scenario())


def test_a_peer_that_says_nothing_is_closed_after_the_hello_timeout(run, owner):
    async def scenario():
        a = owner("alice")
        listener = await a.listen(Limits(hello_timeout_s=0.05))
        _, half = await a.dial(), await a.dial()
        half[1].write(MAGIC)
        await a.until(lambda a: len(a.closed) == 2)
        assert set(a.closed) == {"no hello within 0.05 s"}
        assert listener.counters.hello_timeouts == 2

    run(scenario())


def test_an_open_connection_outlives_the_hello_timeout(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        limits = Limits(hello_timeout_s=1.0)  # more than a handshake takes on a machine under load
        listener = await a.listen(limits)
        conn = await b.connect(listener, limits=limits)
        await a.dial()  # a silent one, that shows when the time is over
        await a.until(lambda a: a.closed)
        conn.send(FRAME)
        await a.until(lambda a: a.frames)
        assert not conn.reason

    run(scenario())


def test_random_bytes_fill_no_memory_and_the_others_go_on(run, owner):
    noise = random.Random(7)
    openings = [
        noise.randbytes(200_000),
        b"GET / HTTP/1.1\r\n" * 10_000,
        PREFIX.pack(MAGIC, 0, 65535) + bytes(200_000),
        PREFIX.pack(MAGIC, 0, 900) + noise.randbytes(200_000),
        PREFIX.pack(MAGIC, 77, 10) + bytes(200_000),
    ]

    async def attack(a, data):
        _, writer = await a.dial()
        try:
            writer.write(data)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass

    async def scenario():
        a, b = owner("alice"), owner("bob")
        listener = await a.listen()
        good = await b.connect(listener)
        await attack(a, openings[0])
        tracemalloc.start()
        for _ in range(20):
            for data in openings:
                await attack(a, data)
            good.send(FRAME)
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await a.until(lambda a: len(a.frames) == 20 and len(a.closed) == 101)
        assert kept < 1_000_000  # 20 MB were thrown at it
        assert listener.counters.faults + sum("broke" in r for r in a.closed) == 101
        assert not good.reason

    run(scenario())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (FIXED.pack(2**32 - 1, WIRE_VERSION, 0, 1, 1, 0), "4294967295 bytes; the limit is"),
        (FIXED.pack(18, WIRE_VERSION + 1, 0, 1, 1, 0), "wire version 2"),
        (FIXED.pack(20, WIRE_VERSION, 0, 1, 1, 3), "header of 3 bytes"),
        (pack_opening.__name__.encode() * 10, "a frame of"),
    ],
    ids=["oversized", "version", "header", "noise"],
)
def test_a_bad_frame_closes_that_connection_and_says_why(run, owner, data, reason):
    async def scenario():
        a, good = owner("alice"), owner("good")
        listener = await a.listen()
        conn = await good.connect(listener)
        _, writer = await a.dial()
        writer.write(pack_opening(owner("bad").hello) + FRAME)
        await a.until(lambda a: a.frames)
        writer.write(data)
        await a.until(lambda a: a.closed)
        assert a.closed[0].startswith("FrameError: a frame of")
        assert reason in a.closed[0]
        assert listener.counters.faults == 1
        conn.send(FRAME)
        await a.until(lambda a: len(a.frames) == 2)

    run(scenario())


NEEDED = "it had not said hello, and its place was needed"


def test_of_more_silent_connections_than_allowed_the_oldest_make_way(run, owner):
    async def scenario():
        a = owner("alice")
        listener = await a.listen(Limits(max_unknown=3, unknown_stay_s=0.0))
        silent = [await a.dial() for _ in range(5)]
        await a.until(lambda a: len(a.closed) == 2)
        assert a.closed == [NEEDED] * 2
        assert listener.counters.turned_away == 2
        assert [await gone(reader) for reader, _ in silent[:2]] == [True] * 2
        silent[4][1].write(pack_opening(owner("late").hello))
        await a.until(lambda a: a.connections)
        conn = await owner("bob").connect(listener)
        conn.close("done")
        listener.close()
        await a.until(lambda a: a.closed.count("the listener was closed") == 2)

    run(scenario())


async def gone(reader):
    """Did the other side hang up?"""
    with contextlib.suppress(ConnectionError):
        return await reader.read() == b""
    return True


def test_idle_connections_of_one_host_keep_nobody_out(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        listener = await a.listen(Limits(max_unknown=8, hello_timeout_s=1000, unknown_stay_s=0.01))
        for _ in range(20):
            for _ in range(10):
                await a.dial()
            await b.connect(listener)
        await a.until(lambda a: len(a.connections) == 20)
        assert len(listener.places) <= 8
        assert listener.counters.hello_timeouts == 0

    run(scenario())


def test_a_peer_that_waits_to_be_let_in_may_send_small_frames_only(run, owner):
    async def scenario():
        a = owner("alice")
        limits = Limits(max_stranger_frame=1000)
        listener = await a.listen(limits)
        waiting = Places(4, 4, 10_000)
        a.at_hello = lambda conn: conn.wait_in(waiting)
        small, large = (pack(1, 0, 1, b"head", bytes(size)) for size in (900, 1100))
        first, second = [await owner(name).connect(listener) for name in ("bob", "carol")]
        first.send(small)
        await a.until(lambda a: a.frames)
        second.send(large)
        await a.until(lambda a: a.closed)
        assert a.closed == [f"FrameError: a frame of {len(large)} bytes; the limit is 1000"]
        a.connections[0].leave_place()
        first.send(large)
        await a.until(lambda a: len(a.frames) == 2)
        assert len(waiting) == 0 == waiting.kept

    run(scenario())


def test_unfinished_frames_of_those_who_wait_are_bounded_together(run, owner):
    async def scenario():
        a = owner("alice")
        await a.listen()
        waiting = Places(1000, 1000, 10_000)
        a.at_hello = lambda conn: conn.wait_in(waiting)
        hello = pack_opening(owner("eve").hello)
        for size in (1000, 3000, 2000, 1000, 3500):
            _, writer = await a.dial()
            writer.write(hello + pack(1, 0, 1, b"", bytes(4000))[:size])
        await a.until(lambda a: a.closed)
        assert a.closed == ["it was not let in, and its place was needed"]
        assert waiting.kept == 7000  # the largest went, not the last one that came
        good = owner("bob")
        conn = await good.connect(a.listeners[0])
        conn.send(FRAME)
        await a.until(lambda a: a.frames)

    run(scenario())


def test_answers_that_one_who_waits_does_not_read_are_bounded_too(run, owner):
    async def scenario():
        a = owner("alice")
        await a.listen()
        waiting = Places(4, 4, 1_000_000)
        a.at_hello = lambda conn: conn.wait_in(waiting)
        a.at_frames = lambda conn: [conn.send(pack(1, 0, 1, b"", bytes(100_000)))] * len(a.frames)
        _, writer = await a.dial()
        writer.transport.pause_reading()
        writer.write(pack_opening(owner("eve").hello))
        while not a.closed:
            writer.write(FRAME)
            await asyncio.sleep(0)
        assert a.closed == ["it was not let in, and its place was needed"]

    run(scenario())


def test_a_refusal_from_the_side_that_connects_is_a_fault(run, owner):
    async def scenario():
        a = owner("alice")
        await a.listen()
        _, writer = await a.dial()
        body = b"\x92\xa1a\xa1b"
        writer.write(PREFIX.pack(MAGIC, 1, len(body)) + body)
        await a.until(lambda a: a.closed)
        assert a.closed == ["FrameError: it sent a Refuse, and only the side that accepts may"]

    run(scenario())


def test_connecting_to_something_else_says_what_answered(run, owner):
    async def scenario():
        async with stranger_server(b"SSH-2.0-OpenSSH\r\n") as port:
            b = owner("bob")
            with pytest.raises(PeerError, match=r"opens with b'SSH-', not with b'OCST'"):
                await connect("127.0.0.1", port, hello=b.hello, handler=b)
            assert b.told == []

    run(scenario())


def test_connecting_to_a_peer_that_hangs_up_says_so(run, owner):
    async def scenario():
        async with stranger_server(b"") as port:
            b = owner("bob")
            with pytest.raises(PeerError, match=r"closed by the peer before its hello|broke"):
                await connect("127.0.0.1", port, hello=b.hello, handler=b)

    run(scenario())


def test_connecting_to_a_silent_port_times_out_and_names_it(run, owner):
    async def scenario():
        async with stranger_server(b"", stay=True) as port:
            b = owner("bob")
            with pytest.raises(
                TimeoutError, match=rf"127.0.0.1:{port} did not answer within 0.05 s"
            ):
                options = {"limits": Limits(hello_timeout_s=1000), "timeout": 0.05}
                await connect("127.0.0.1", port, hello=b.hello, handler=b, **options)
            assert b.told == []  # and the server sees us go, or it would serve for ever

    run(scenario())


def test_connecting_where_nobody_listens_is_an_os_error(run, owner):
    async def scenario():
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            b = owner("bob")
            with pytest.raises(ConnectionRefusedError):
                await connect(*unused.getsockname(), hello=b.hello, handler=b)

    run(scenario())


def test_a_peer_that_greets_from_another_cluster_without_refusing_is_given_up(run, owner):
    async def scenario():
        async with stranger_server(
            pack_opening(owner("eve", cluster="other").hello), stay=True
        ) as port:
            b = owner("bob")
            with pytest.raises(PeerError, match="this is cluster 'c', not 'other'"):
                await connect("127.0.0.1", port, hello=b.hello, handler=b)
            assert b.told == []

    run(scenario())


def test_the_accepting_side_answers_with_exactly_one_hello(run, owner):
    async def scenario():
        a = owner("alice")
        listener = await a.listen()
        reader, writer = await a.dial()
        writer.write(pack_opening(owner("bob").hello))
        expected = pack_opening(listener.hello)
        data = await reader.readexactly(len(expected))
        assert split_opening(data) == (listener.hello, len(data))
        a.connections[0].close("done")
        assert await reader.read() == b""

    run(scenario())
