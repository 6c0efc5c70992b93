"""Endpoints over loopback: who is heard, what shares a datagram, what a loss costs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from datagrams import free_group
from ordercast.errors import ConfigError
from ordercast.transport.datagram import (
    FRAGMENT,
    FRAMES,
    NUMBER,
    PIECE,
    PROBE,
    SEEN,
    WANT,
    Datagram,
    pack_audience,
    pack_datagram,
    pack_want,
    read_datagram,
)
from ordercast.transport.settings import IpMulticast, Udp
from ordercast.transport.udp import DatagramEndpoint
from ordercast.wire.frame import Frame, pack

Run = Callable[[Coroutine[Any, Any, Any]], Any]

HOST = "127.0.0.1"
MAX_FRAME = 4_000_000


def packet(number: int, size: int = 10) -> bytes:
    return pack(7, 0, 1, b"", number.to_bytes(4, "big") + bytes(size))


class Site:
    """An endpoint, and what it heard."""

    def __init__(self, pid: int, settings: Udp | IpMulticast) -> None:
        self.pid = pid
        self.session = b"session%d" % pid
        self.heard: list[tuple[int, Frame]] = []
        self.news = asyncio.Event()
        self.batches = 0
        self.endpoint = DatagramEndpoint(
            settings, self, name=f"p{pid}", session=self.session, max_frame=MAX_FRAME
        )
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((HOST, 0))
            self.address = (HOST, probe.getsockname()[1])
        self.endpoint.open(self.address)
        self.endpoint.introduce_as(pid)

    def on_datagrams(self, pid: int, frames: list[Frame]) -> None:
        self.heard += [(pid, frame) for frame in frames]
        self.batches += 1
        self.news.set()

    @property
    def numbers(self) -> list[int]:
        return [int.from_bytes(frame[4][:4], "big") for _, frame in self.heard]

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.01):  # counters have no news
                    await self.news.wait()

    def stat(self, name: str) -> Any:
        return self.endpoint.stats()[name]


@contextlib.contextmanager
def sites(*settings: Udp | IpMulticast) -> Iterator[list[Site]]:
    """Endpoints that know each other, numbered from 1."""
    made: list[Site] = []
    try:
        for pid, choice in enumerate(settings, 1):
            made.append(Site(pid, choice))
        for site in made:
            for other in made:
                if other is not site:
                    site.endpoint.add_peer(other.pid, other.session, other.address)
        yield made
    finally:
        for site in made:
            site.endpoint.close()


def throw(data: bytes, site: Site) -> None:
    """A datagram from somebody."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(data, site.address)


class Refusing(socket.socket):
    """The system has an error to tell before what has come."""

    errors = 1

    def recv(self, *args: Any) -> bytes:
        if self.errors:
            self.errors -= 1
            raise ConnectionRefusedError
        return super().recv(*args)


def test_an_error_of_the_system_is_counted_and_is_not_taken_for_an_empty_socket(run: Run) -> None:
    async def body() -> None:
        with sites(Udp()) as (a,), Refusing(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            receiver = a.endpoint._receiver
            assert receiver.drain(sock, 0.0) is False
            assert a.stat("receive_errors") == 1
            assert receiver.drain(sock, 0.0) is True
            assert a.stat("receive_errors") == 1

    run(body())


def test_small_packets_of_one_turn_share_a_datagram(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(), Udp()) as (a, b):
            for number in range(20):
                a.endpoint.send((2,), packet(number))
            await b.until(lambda: len(b.heard) == 20)
            assert b.numbers == list(range(20)) and b.batches == 1
            assert {pid for pid, _ in b.heard} == {1}
            assert a.stat("datagrams_out") == 1

    run(body())


def test_a_packet_larger_than_a_datagram_arrives_whole(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(), Udp()) as (a, b):
            a.endpoint.send((2,), packet(1, 1_000_000))
            a.endpoint.send((2,), packet(2))
            await b.until(lambda: len(b.heard) == 2)
            assert sorted(b.numbers) == [1, 2]
            assert max(len(frame[4]) for _, frame in b.heard) == 1_000_004
            assert b.stat("fragments_pending") == 0 == b.stat("reassembly_used")

    run(body())


@pytest.mark.parametrize("loss", [0.05, 0.4])
def test_lost_pieces_of_a_large_packet_are_sent_again_and_nothing_else(
    run: Run, loss: float
) -> None:
    async def body() -> None:
        with sites(Udp(), Udp(inject_loss=loss, seed=3)) as (a, b):
            for number in range(3):
                a.endpoint.send((2,), packet(number, 300_000))
            await b.until(lambda: len(b.heard) == 3)
            assert sorted(b.numbers) == [0, 1, 2]
            assert 0 < a.stat("pieces_sent_again") < 3 * 300_000 / 1400 * 4 * loss

    run(body())


def test_a_sender_waits_for_a_receiver_that_reads_late(run: Run) -> None:
    async def body() -> None:
        small = Udp(socket_buffer=100_000)
        with sites(small, small) as (a, b):
            for number in range(40):
                a.endpoint.send((2,), packet(number, 50_000))
            await asyncio.sleep(0)
            assert a.stat("under_way") <= a.stat("max_under_way") + 1400 + 768
            assert a.stat("queued_bytes") > 1_000_000
            await b.until(lambda: len(b.heard) == 40)
            assert sorted(b.numbers) == list(range(40))
            assert a.stat("queued_bytes") == 0

    run(body())


def test_a_full_queue_drops_packets_and_counts_them(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(queue_bytes=10_000), Udp()) as (a, b):
            for number in range(9):
                a.endpoint.send((2,), packet(number, 3_000))
            await b.until(lambda: len(b.heard) == 4)
            assert a.stat("datagrams_lost_here") == 5

    run(body())


def test_a_repeat_of_what_has_not_left_is_spared_and_one_of_what_has_is_sent(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(), Udp()) as (a, b):
            a.endpoint.send((2,), packet(1), "content")
            a.endpoint.send((2,), packet(2), "content")
            a.endpoint.send((2,), packet(3), "other")
            await b.until(lambda: len(b.heard) == 2)
            a.endpoint.send((2,), packet(4), "content")
            await b.until(lambda: len(b.heard) == 3)
            assert b.numbers == [1, 3, 4]
            assert a.stat("repeats_spared") == 1

    run(body())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"noise",
        bytes(2_000),
        pack_datagram(FRAMES, 9, b"session9", 1, b"", packet(1)),
        pack_datagram(FRAMES, 2, b"guessed!", 1, b"", packet(1)),
        pack_datagram(FRAMES, 1, b"guessed!", 1, b"", packet(1)),
        pack_datagram(FRAMES, 2, b"session2", 1, b"", packet(1)[:-1]),
        pack_datagram(FRAMES, 2, b"session2", 1, b"", b"\xff" * 40),
        pack_datagram(FRAGMENT, 2, b"session2", 1, b"", b"x"),
        pack_datagram(FRAGMENT, 2, b"session2", 1, b"", PIECE.pack(1, 0, 2**32 - 1) + bytes(1000)),
        pack_datagram(WANT, 2, b"session2", 0, b"", b"x"),
        pack_datagram(SEEN, 2, b"session2", 0, b"", b"x"),
        pack_datagram(SEEN, 2, b"session2", 0, b"", NUMBER.pack(1)),
    ],
    ids=[
        "empty", "noise", "zeros", "stranger", "spoofed", "spoofed as itself", "cut", "not frames",
        "no piece", "bomb", "want", "seen", "never sent",
    ],
)  # fmt: skip
def test_what_is_not_one_of_ours_is_counted_logged_once_and_harms_nobody(
    run: Run, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        with sites(Udp(), Udp()) as (a, b):
            with caplog.at_level(logging.WARNING, "ordercast.transport.udp"):
                throw(data, a)
                throw(data, a)
                await a.until(lambda: a.stat("datagrams_refused") == 2)
            assert len(caplog.records) == 1
            assert not a.heard and a.stat("fragments_pending") == 0
            b.endpoint.send((1,), packet(5))
            await a.until(lambda: bool(a.heard))
            assert a.numbers == [5]

    run(body())


def test_what_a_datagram_breaks_off_is_not_continued_by_the_next(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(), Udp()) as (a, b):
            throw(pack_datagram(FRAMES, 2, b"session2", 1, b"", packet(1)[:-1]), a)
            await a.until(lambda: a.stat("datagrams_refused") == 1)
            b.endpoint.send((1,), packet(5))
            await a.until(lambda: bool(a.heard))
            assert a.numbers == [5] and a.stat("datagrams_refused") == 1

    run(body())


def test_a_request_for_pieces_that_are_not_here_is_ignored(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(), Udp()) as (a, _):
            throw(pack_datagram(WANT, 2, b"session2", 0, b"", pack_want(4, [0, 1])), a)
            await a.until(lambda: a.stat("datagrams_in") == 1)
            assert a.stat("pieces_sent_again") == 0 == a.stat("datagrams_out")

    run(body())


def test_a_peer_that_is_gone_is_sent_nothing_and_not_heard(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(), Udp()) as (a, b):
            a.endpoint.remove_peer(2)
            a.endpoint.send((2,), packet(1))
            b.endpoint.send((1,), packet(2))
            await a.until(lambda: a.stat("datagrams_late") == 1)
            assert a.stat("datagrams_refused") == 0
            assert a.stat("datagrams_out") == 0 == a.stat("queued_bytes") and not a.heard

    run(body())


def test_a_silent_peer_does_not_stop_the_sender_for_ever(run: Run) -> None:
    async def body() -> None:
        small = Udp(socket_buffer=20_000)
        with sites(small, small) as (a, b):
            b.endpoint.close()
            for number in range(30):
                a.endpoint.send((2,), packet(number, 10_000))
            await a.until(lambda: a.stat("silences") > 0)
            await a.until(lambda: a.stat("queued_bytes") < 200_000)

    run(body())


@contextlib.contextmanager
def site_and_stub() -> Iterator[tuple[Site, socket.socket]]:
    """An endpoint with a small buffer, and a peer that answers only what the test lets it."""
    small = Udp(socket_buffer=20_000, repair_ms=60)
    with sites(small) as (a,), socket.socket(type=socket.SOCK_DGRAM) as stub:
        stub.setblocking(False)
        stub.bind((HOST, 0))
        a.endpoint.add_peer(2, b"session2", stub.getsockname())
        yield a, stub


async def heard_by(stub: socket.socket, kind: int) -> Datagram:
    """The first datagram of this kind."""
    while True:
        data = await asyncio.get_running_loop().sock_recv(stub, 65_536)
        datagram = read_datagram(data)
        if datagram[0] == kind:
            return datagram


def test_a_sender_that_waits_asks_and_goes_on_with_the_answer(run: Run) -> None:
    async def body() -> None:
        with site_and_stub() as (a, stub):
            a.endpoint.send((2,), packet(1, 200_000))
            await heard_by(stub, PROBE)
            under_way = a.stat("datagrams_out")
            throw(pack_datagram(SEEN, 2, b"session2", 0, b"", NUMBER.pack(9)), a)
            await a.until(lambda: a.stat("datagrams_out") > under_way + 5)
            assert a.stat("silences") == 0

    run(body())


def test_pieces_that_have_not_left_yet_are_not_sent_again(run: Run) -> None:
    async def body() -> None:
        with site_and_stub() as (a, _):
            a.endpoint.send((2,), packet(1, 200_000))
            await a.until(lambda: a.stat("under_way") > 0)
            throw(pack_datagram(WANT, 2, b"session2", 0, b"", pack_want(1, [0, 99])), a)
            throw(pack_datagram(SEEN, 2, b"session2", 0, b"", NUMBER.pack(9)), a)
            await a.until(lambda: a.stat("datagrams_in") == 2)
            assert a.stat("pieces_sent_again") == 0

    run(body())


def test_nobody_asks_for_what_lies_in_its_own_buffer(run: Run) -> None:
    async def body() -> None:
        with site_and_stub() as (a, _):
            whole = packet(7)
            halves = [PIECE.pack(1, 0, 2) + whole[:20], PIECE.pack(1, 1, 2) + whole[20:]]
            throw(pack_datagram(FRAGMENT, 2, b"session2", 1, b"", halves[0]), a)
            await a.until(lambda: a.stat("fragments_pending") == 1)
            throw(pack_datagram(FRAGMENT, 2, b"session2", 2, b"", halves[1]), a)
            before = a.stat("datagrams_out")
            time.sleep(0.1)  # this process has to wait for the processor
            a.endpoint._on_tick()
            assert a.numbers == [7]
            assert a.stat("datagrams_out") == before

    run(body())


def test_pieces_of_which_the_rest_never_comes_are_forgotten(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(reassembly_ms=20), Udp()) as (a, _):
            piece = PIECE.pack(1, 0, 2) + b"half"
            throw(pack_datagram(FRAGMENT, 2, b"session2", 1, b"", piece), a)
            # That a piece waits at all is seen elsewhere: here it may be over before anybody looks.
            await a.until(lambda: a.stat("reassembly_expired") == 1)
            assert a.stat("fragments_pending") == 0

    run(body())


def test_faults_on_purpose_lose_double_and_overtake(run: Run) -> None:
    async def body() -> None:
        faults = Udp(inject_loss=0.2, inject_duplicates=0.2, inject_reordering=0.2, seed=1)
        with sites(Udp(), faults) as (a, b):
            for number in range(200):
                a.endpoint.send((2,), packet(number))
                await asyncio.sleep(0)
            await a.until(lambda: a.stat("datagrams_out") == 200)
            await b.until(lambda: b.stat("lost_on_purpose") + len(set(b.numbers)) >= 198)
            assert 10 < b.stat("lost_on_purpose") < 80
            assert len(b.numbers) > len(set(b.numbers))
            assert b.numbers != sorted(b.numbers)

    run(body())


def test_without_a_multicast_group_each_receiver_is_sent_its_own_datagram(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(), Udp(), Udp()) as (a, b, c):
            a.endpoint.send((2, 3), packet(1))
            await b.until(lambda: bool(b.heard))
            await c.until(lambda: bool(c.heard))
            assert a.stat("datagrams_out") == 2

    run(body())


def test_a_packet_for_several_leaves_once_and_only_they_hear_it(run: Run) -> None:
    async def body() -> None:
        group = IpMulticast(free_group())
        with sites(group, group, group, group) as (a, b, c, d):
            a.endpoint.send((2, 3), packet(1))
            a.endpoint.send((2, 3), packet(2))
            a.endpoint.send((2,), packet(3))
            await b.until(lambda: len(b.heard) == 3)
            await c.until(lambda: len(c.heard) == 2)
            await d.until(lambda: d.stat("not_for_us") == 1)
            assert c.numbers == [1, 2] and sorted(b.numbers) == [1, 2, 3]
            assert not d.heard and not a.heard
            assert a.stat("datagrams_out") == 2  # one for two, one for one
            assert a.stat("not_for_us") == 1  # it hears itself
            assert a.stat("datagrams_refused") == 0

    run(body())


def test_a_newcomer_that_hears_others_before_it_knows_them_accuses_nobody(run: Run) -> None:
    async def body() -> None:
        group = IpMulticast(free_group())
        with sites(group, group, group) as (a, *_):
            newcomer = Site(-1, group)
            try:
                a.endpoint.send((2, 3), packet(1))
                await newcomer.until(lambda: newcomer.stat("not_for_us") == 1)
                assert newcomer.stat("datagrams_refused") == 0
            finally:
                newcomer.endpoint.close()

    run(body())


def test_each_receiver_of_a_large_multicast_gets_the_pieces_it_lost(run: Run) -> None:
    async def body() -> None:
        group = free_group()
        lossy = [IpMulticast(group, inject_loss=0.1, seed=seed) for seed in (1, 2, 3)]
        with sites(IpMulticast(group), *lossy) as (a, *others):
            a.endpoint.send((2, 3, 4), packet(1, 400_000))
            for other in others:
                await other.until(lambda site=other: bool(site.heard))  # type: ignore[misc]
                assert other.numbers == [1]

    run(body())


def test_ids_too_far_apart_for_an_audience_are_sent_to_one_by_one(run: Run) -> None:
    async def body() -> None:
        group = IpMulticast(free_group())
        with sites(group, group) as (a, b):
            a.endpoint.add_peer(10_000, b"session!", ("127.0.0.1", 9))
            assert pack_audience((2, 10_000)) is None
            a.endpoint.send((2, 10_000), packet(1))
            await b.until(lambda: bool(b.heard))
            assert a.stat("datagrams_out") == 2

    run(body())


def test_a_port_that_is_taken_is_named(run: Run) -> None:
    async def body() -> None:
        with sites(Udp()) as (a,):
            other = DatagramEndpoint(Udp(), a, name="x", session=b"12345678", max_frame=100)
            with pytest.raises(OSError, match=f"UDP bind to {HOST}:{a.address[1]}"):
                other.open(a.address)

    run(body())


def test_an_interface_that_is_not_here_is_named(run: Run) -> None:
    async def body() -> None:
        with sites(Udp()) as (a,):
            settings = IpMulticast(free_group(), interface="203.0.113.9")
            other = DatagramEndpoint(settings, a, name="x", session=b"12345678", max_frame=100)
            with pytest.raises(ConfigError, match=r"interface='203\.0\.113\.9' is no address"):
                other.open((HOST, 0))

    run(body())


def test_what_is_sent_after_closing_is_dropped(run: Run) -> None:
    async def body() -> None:
        with sites(Udp(), Udp()) as (a, _):
            a.endpoint.close()
            a.endpoint.close()
            a.endpoint.send((2,), packet(1))
            await asyncio.sleep(0)
            assert a.stat("datagrams_out") == 0

    run(body())
