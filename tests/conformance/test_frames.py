"""Messages travel in frames, and protocols order frames. No cutting into frames can be noticed."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core.events import Multicast, Receive, View
from ordercast.process.given import GivenGroups
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.outbox import Outbox
from ordercast.runtime.receipt import Progress
from ordercast.runtime.window import NodeWindow, Window
from ordercast.simulation import simulate
from ordercast.trace.oracle import verdicts
from ordercast.trace.schema import Event
from ordercast.wire.messages import pack_messages, unpack_messages
from sweep.arenas import ARENAS

GROUPS = (1, 2)
MEMBERS = (0, 1, 2)
COST = 10  # of a message in a frame

turns = st.lists(st.lists(st.sampled_from(GROUPS), max_size=6), min_size=1, max_size=5)
"""what one process says: the groups of its messages, turn by turn of the loop"""

rooms = st.integers(1, 40)
"""how much a frame may hold; below the cost of one message each travels alone"""

Frame = tuple[int, bytes]  # group, payload


class Sender:
    """One group of a node: it numbers messages as they leave, and keeps the frames."""

    def __init__(self, group: int, frames: list[Frame]) -> None:
        self.group = group
        self.frames = frames
        self.progress = Progress(lambda: False)
        self.window = Window(10**6, 0, NodeWindow(10**6, 0))
        self.frames_sent = 0
        self.sent = 0

    def send_frame(self, bodies: list[bytes], size: int) -> None:
        self.frames.append((self.group, pack_messages(self.sent + 1, bodies)))
        self.sent += len(bodies)


def cut(said: list[list[int]], room: int) -> list[Frame]:
    """The frames in which a node sends this; a body is its place in what was said."""
    frames: list[Frame] = []
    senders = {group: Sender(group, frames) for group in GROUPS}
    outbox = Outbox(room, lambda: None)
    place = 0
    for turn in said:
        for group in turn:
            place += 1
            outbox.add(senders[group], bytes([place]), COST)
        outbox.seal()
    return frames


def bodies(frames: list[Frame]) -> list[tuple[int, int]]:
    """(group, place in what was said), message by message."""
    return [(group, body[0]) for group, raw in frames for body in unpack_messages(raw)[1]]


@given(turns, rooms)
def test_frames_leave_in_the_order_of_what_was_said(said: list[list[int]], room: int) -> None:
    wanted = enumerate((group for turn in said for group in turn), start=1)
    assert bodies(cut(said, room)) == [(group, place) for place, group in wanted]


@given(turns, rooms)
def test_the_numbers_of_messages_do_not_depend_on_the_frames(
    said: list[list[int]], room: int
) -> None:
    for group in GROUPS:
        numbers = [
            first + i
            for g, raw in cut(said, room)
            if g == group
            for first, listed in [unpack_messages(raw)]
            for i in range(len(listed))
        ]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_to_g1_b_to_g2_c_to_g1_in_one_turn_are_three_frames() -> None:
    assert [group for group, _ in cut([[1, 2, 1]], room=1000)] == [1, 2, 1]


def test_what_one_turn_says_to_one_group_is_one_frame() -> None:
    assert len(cut([[1, 1, 1]], room=1000)) == 1


def deliver_everywhere(protocol: str, said: list[list[Frame]], rng: Random) -> list[list[Frame]]:
    """Frames through the real machines, packets in any order; what each process delivers."""
    machines = [GivenGroups(p, network="N1") for p in MEMBERS]
    delivered: list[list[Frame]] = [[] for _ in MEMBERS]
    packets: list[tuple[int, Receive]] = []

    def step(p: int, event: View | Multicast | Receive) -> None:
        out = machines[p].step((event,))
        for to, *packet in out.transmits:
            packets.extend((q, Receive(p, *packet)) for q in to)
        delivered[p] += [(d[0], d[4]) for d in out.deliveries if isinstance(d, tuple)]

    for group in GROUPS:
        for p in MEMBERS:
            machines[p].open(group, PROTOCOLS[protocol])
            step(p, View(group, 1, MEMBERS, leader=0))
    left = [list(frames) for frames in said]
    while packets or any(left):
        speakers = [p for p in MEMBERS if left[p]]
        if speakers and (not packets or rng.random() < 0.3):
            p = rng.choice(speakers)
            step(p, Multicast(*left[p].pop(0)))
        else:
            step(*packets.pop(rng.randrange(len(packets))))
    return delivered


def in_group(frames: list[Frame], group: int) -> list[tuple[int, bytes]]:
    """(number, body) of every message of one group, as a process sees them."""
    return [
        (first + i, body)
        for g, raw in frames
        if g == group
        for first, listed in [unpack_messages(raw)]
        for i, body in enumerate(listed)
    ]


@given(st.lists(turns, min_size=3, max_size=3), rooms, st.integers(0, 2**32))
def test_with_a_sequencer_any_cutting_gives_all_members_one_order_of_messages(
    said: list[list[list[int]]], room: int, seed: int
) -> None:
    marked = [_mark(cut(one, room), p) for p, one in enumerate(said)]
    delivered = deliver_everywhere("sequencer_pb", marked, Random(seed))
    for group in GROUPS:
        first, *others = [in_group(frames, group) for frames in delivered]
        assert all(other == first for other in others)
        for p in MEMBERS:  # and each sender's messages as it said them
            own = [message for message in first if message[1][0] == p]
            assert own == in_group(marked[p], group)


@given(turns, rooms, rooms, st.integers(0, 2**32))
def test_two_cuttings_of_one_speech_are_heard_alike(
    said: list[list[int]], one: int, other: int, seed: int
) -> None:
    heard = [
        deliver_everywhere("fifo", [cut(said, room), [], []], Random(seed)) for room in (one, other)
    ]
    for p in MEMBERS:
        for group in GROUPS:
            assert in_group(heard[0][p], group) == in_group(heard[1][p], group)


def _mark(frames: list[Frame], p: int) -> list[Frame]:
    """The same frames with the sender's name in every body."""
    unpacked = [(group, *unpack_messages(raw)) for group, raw in frames]
    return [
        (group, pack_messages(first, [bytes([p]) + body for body in listed]))
        for group, first, listed in unpacked
    ]


def unfold(events: list[Event], sizes: dict[str, int]) -> list[Event]:
    """The trace of the messages, where the trace of the frames says `events`."""
    unfolded: list[Event] = []
    for event in events:
        parts = sizes[event.message] if event.message else 1
        for part in range(parts):
            index = None if event.index is None else event.index * 10 + part
            message = event.message and f"{event.message}.{part}"
            unfolded.append(msgspec.structs.replace(event, index=index, message=message))
    return unfolded


PAIRS = [(p, a) for p, page in PROTOCOLS.items() for a in ARENAS if ARENAS[a].serves(page)]


@settings(max_examples=20)
@given(st.sampled_from(PAIRS), st.integers(0, 10**6))
def test_what_holds_for_frames_holds_for_the_messages_in_them(
    pair: tuple[str, str], seed: int
) -> None:
    protocol, arena = pair
    machine = PROTOCOLS[protocol]
    events = simulate(ARENAS[arena].config(machine, seed)).events()
    rng = Random(seed)
    sizes = {e.message: rng.randint(1, 2) for e in events if e.kind == "send" and e.message}
    found = verdicts(unfold(events, sizes))
    wanted = ARENAS[arena].wanted(machine)
    assert {name: found[name] for name in wanted} == dict.fromkeys(wanted, "ok")
