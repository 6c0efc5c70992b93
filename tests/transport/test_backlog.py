"""Word of the cluster does not wait behind data, whatever the peer reads."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from ordercast.transport.backlog import PIECE, Backlog
from ordercast.transport.tcp import Limits
from ordercast.wire.control import CLUSTER_CHANNEL
from ordercast.wire.frame import FIXED_SIZE, Frame, Splitter, channel_of, pack
from ordercast.wire.opening import split_opening

KiB, MiB = 1024, 1024 * 1024
LIMITS = Limits(high_water=256 * KiB, low_water=64 * KiB)


def data(n: int, size: int = 0) -> bytes:
    return pack(7, 0, 1, b"%d" % n, bytes(size))


def word(n: int) -> bytes:
    return pack(CLUSTER_CHANNEL, 0, 0, b"%d" % n, b"")


def emptied(backlog: Backlog) -> list[Frame]:
    splitter, frames = Splitter(64 * MiB), []
    while backlog:
        before = backlog.size
        piece = backlog.take()
        assert 0 < len(piece) <= PIECE and backlog.size == before - len(piece)
        frames += splitter.feed(piece)
    assert splitter.pending == 0 and backlog.take() == b""
    return frames


def test_the_channel_of_a_frame_stands_where_it_is_read() -> None:
    assert channel_of(data(1)) == 7 and channel_of(word(1)) == CLUSTER_CHANNEL


def test_words_leave_first_and_each_lane_keeps_its_order() -> None:
    backlog = Backlog()
    for n in range(100):
        backlog.put(data(n, size=10 * KiB))
        backlog.put(word(n))
    frames = emptied(backlog)
    assert [frame[0] for frame in frames] == [CLUSTER_CHANNEL] * 100 + [7] * 100
    assert [int(frame[3]) for frame in frames] == [*range(100), *range(100)]


@pytest.mark.parametrize("size", [PIECE, PIECE - FIXED_SIZE - 1, PIECE + 1, 3 * PIECE + 5])
def test_a_frame_that_has_begun_is_finished_first(size: int) -> None:
    backlog = Backlog()
    backlog.put(data(1, size))
    backlog.put(data(2, size))
    begun = backlog.take()
    backlog.put(word(3))
    splitter = Splitter(64 * MiB)
    frames = splitter.feed(begun)
    while backlog:
        frames += splitter.feed(backlog.take())
    assert [int(frame[3]) for frame in frames] == [1, 3, 2]
    assert [len(frame[4]) for frame in frames] == [size, 0, size]


def test_what_is_dropped_does_not_leave() -> None:
    backlog = Backlog()
    backlog.put(data(1, 2 * PIECE))
    backlog.take()
    backlog.put(word(2))
    backlog.clear()
    assert not backlog and backlog.take() == b""


def test_a_word_overtakes_data_that_a_slow_peer_has_not_read(run, owner) -> None:
    async def scenario() -> None:
        a, conn, raw = await owner.silent_reader(LIMITS)
        for n in range(128):
            conn.send(data(n, size=MiB // 2))
            await asyncio.sleep(0)
        conn.send(word(1))
        conn.send(word(2))
        await asyncio.sleep(0)
        assert conn.buffered > 32 * MiB
        frames = await asyncio.to_thread(read_frames, raw, 130)
        kinds = [frame[0] for frame in frames]
        assert kinds.count(7) == 128
        assert kinds.index(CLUSTER_CHANNEL) < 64  # the kernel held what was before
        assert [int(f[3]) for f in frames if f[0] == 7] == list(range(128))
        assert [int(f[3]) for f in frames if f[0] != 7] == [1, 2]
        await a.until(lambda a: a.told[-1] == "writable")
        assert a.told.count("congested") == 1 and conn.buffered == 0

    run(scenario())


def test_a_connection_that_is_closed_sends_what_waits_in_the_backlog(run, owner) -> None:
    async def scenario() -> None:
        _, conn, raw = await owner.silent_reader(LIMITS)
        reading = asyncio.ensure_future(asyncio.to_thread(read_frames, raw, 64))
        for n in range(64):
            conn.send(data(n, size=MiB // 2))
        conn.close("done")
        assert [int(frame[3]) for frame in await reading] == list(range(64))

    run(scenario())


class Written:
    """A transport that notes what is written, and takes any amount."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.pieces: list[bytes] = []
        self.closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        self.pieces.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closing


def test_nothing_is_written_while_the_transport_writes_nor_after_a_write_has_failed(
    run, owner
) -> None:
    """asyncio says that it takes more while it writes; a write inside of that which fails ended the
    connection twice, with a traceback in the log."""

    async def scenario() -> None:
        _, conn, _raw = await owner.silent_reader(LIMITS)
        for n in range(64):
            conn.send(data(n, size=MiB // 2))
            await asyncio.sleep(0)
        written = conn._transport = Written(conn._transport)
        assert conn._backlog
        conn.resume_writing()
        assert not written.pieces
        written.closing = True
        await asyncio.sleep(0)
        assert not written.pieces and conn._backlog
        written.closing = False
        conn.resume_writing()
        await asyncio.sleep(0)
        assert written.pieces and not conn._backlog

    run(scenario())


def read_frames(raw: socket.socket, count: int) -> list[Frame]:
    """In a thread: after the Hello."""
    opening, splitter, frames = b"", Splitter(64 * MiB), []
    while (found := split_opening(opening)) is None:
        opening += raw.recv(1 << 20)
    frames += splitter.feed(opening[found[1] :])
    while len(frames) < count and (received := raw.recv(1 << 20)):
        frames += splitter.feed(received)
    return frames
