"""No number in a single datagram, whatever it is, does lasting harm.

Whoever learned the session of a node can send one datagram in its name. It may cost what one lost
datagram costs. Two halves of two endpoints are joined here without sockets and without time: if
what is under way is not reported when the sender asks, nothing moves, and the test sees that.
"""

from __future__ import annotations

from collections import deque

from hypothesis import example, given
from hypothesis import strategies as st

from ordercast.transport.contract import DatagramCounters
from ordercast.transport.datagram import (
    AUDIENCE,
    FRAGMENT,
    FRAMES,
    NUMBER,
    PIECE,
    PLACE,
    PROBE,
    SEEN,
    WANT,
    pack_datagram,
)
from ordercast.transport.flow import LEAST_UNDER_WAY, Flow
from ordercast.transport.reassembly import Reassembly
from ordercast.transport.receiving import Receiver
from ordercast.transport.sending import Peer, Sender
from ordercast.transport.settings import Udp
from ordercast.wire.frame import Frame, pack

NOW = 0.0
MAX_FRAME = 4_000_000
PACKETS = 60  # of 10,000 bytes: several times of what may be under way

u16, u32, u64 = (
    st.sampled_from([0, 1, 2, 7, 2 ** (bits - 1), 2**bits - 2, 2**bits - 1])
    | st.integers(0, 2**bits - 1)
    for bits in (16, 32, 64)
)

numbers = st.one_of(
    st.builds(lambda n: pack_datagram(FRAMES, 1, b"session1", n, b"", b""), u64),
    st.builds(lambda n, s: pack_datagram(SEEN, 1, b"session1", n, b"", NUMBER.pack(s)), u64, u64),
    st.builds(lambda n: pack_datagram(PROBE, 1, b"session1", n, b"", b""), u64),
    st.builds(
        lambda n, packet, place, count: pack_datagram(
            FRAGMENT, 1, b"session1", n, b"", PIECE.pack(packet, place, count) + b"x"
        ),
        u64, u32, u32, u32,
    ),
    st.builds(
        lambda n, places: pack_datagram(
            WANT, 1, b"session1", n, b"", b"".join(map(PLACE.pack, places))
        ),
        u64, st.lists(u32, max_size=5),
    ),
    st.builds(
        lambda n, first: pack_datagram(
            FRAMES, 1, b"session1", n, AUDIENCE.pack(first) + b"\1", b""
        ),
        u64, u32,
    ),
    st.builds(
        lambda kind, pid, n: pack_datagram(kind, pid, b"session1", n, b"", b""),
        st.integers(0, 255), u32, u64,
    ),
)  # fmt: skip


class Side:
    """One endpoint; what it sends lies in the other's `inbox`."""

    def __init__(self, me: int) -> None:
        self.inbox: deque[bytes] = deque()
        self.other: Side | None = None
        self.heard: list[Frame] = []
        self.counters = DatagramCounters()
        self.peers: dict[int, Peer] = {}
        self.sender = Sender(Udp(), b"session%d" % me, self.peers, self.counters)
        self.sender.me = me
        self.sender.open(self, None)  # type: ignore[arg-type]
        self.receiver = Receiver(self, self.sender, self.peers, self.counters, MAX_FRAME, None)

    def sendto(self, data: bytes, address: object) -> None:
        assert self.other is not None
        self.other.inbox.append(data)

    def recv(self, most: int) -> bytes:
        if not self.inbox:
            raise BlockingIOError
        return self.inbox.popleft()

    def on_datagrams(self, pid: int, frames: list[Frame]) -> None:
        self.heard += [frame for frame in frames if len(frame[4]) == 10_000]

    def meet(self, other: Side) -> None:
        self.other = other
        pid = other.sender.me
        flow = Flow(LEAST_UNDER_WAY, NOW)
        self.peers[pid] = Peer(
            b"session%d" % pid, ("", 0), flow, Reassembly(MAX_FRAME, 16 * MAX_FRAME)
        )


def pair() -> tuple[Side, Side]:
    a, b = Side(1), Side(2)
    a.meet(b)
    b.meet(a)
    return a, b


def send(a: Side, b: Side, packets: int) -> None:
    """Packets of a, until all that can move has moved; a sender that waits asks once."""
    for number in range(packets):
        a.sender.put((2,), pack(7, 0, number, b"", bytes(10_000)), None)
    a.sender.pump(NOW)
    exchange(a, b)
    while a.sender.queues and (left := len(b.heard)) < packets:
        a.sender.probe(a.peers[2])
        exchange(a, b)
        if left == len(b.heard):
            break


def exchange(a: Side, b: Side) -> None:
    while a.inbox or b.inbox:
        b.receiver.drain(b, NOW)  # type: ignore[arg-type]
        a.receiver.drain(a, NOW)  # type: ignore[arg-type]


@given(numbers, st.integers(0, 3))
@example(pack_datagram(FRAMES, 1, b"session1", 2**64 - 1, b"", b""), 0)
@example(pack_datagram(FRAGMENT, 1, b"session1", 2**64 - 1, b"", PIECE.pack(0, 0, 2) + b"x"), 3)
def test_after_one_datagram_with_any_numbers_all_that_follows_arrives(false, before):
    a, b = pair()
    send(a, b, before)
    b.inbox.append(false)
    b.receiver.drain(b, NOW)
    a.receiver.drain(a, NOW)
    b.heard.clear()
    first = a.sender.repairs._next_id
    send(a, b, PACKETS)
    taken = {first + 1 + k for k in range(PACKETS)}
    spoiled = taken & {*b.peers[1].reassembly.incomplete, *b.peers[1].reassembly._complete}
    lost = PACKETS - len(b.heard)
    assert lost <= 1, f"{lost} packets never left, or were not put together"
    assert len(spoiled) >= lost
    assert not a.sender.queues, "what may be under way was never told to have come"


@given(st.lists(u64, min_size=1, max_size=9))
def test_no_report_says_more_than_the_sender_says_that_it_has_sent(false):
    flow = Flow(LEAST_UNDER_WAY, NOW)
    for number in (*false, 41, 42):
        flow.came(number, 10)
    flow.asked(0)  # as an older version asks
    assert flow.report() == max(*false, 42)
    flow.asked(42)
    assert flow.report() == 42
    flow.came(43, 10)
    assert flow.report() == 43
