"""From what a machine holds back to `hold` rows, and from there to the story of a wait."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ordercast.core.events import Event as MachineEvent
from ordercast.core.events import Multicast, Receive, Timer, View
from ordercast.core.output import Output
from ordercast.core.waiting import MAX_NAMED, NOBODY, Awaited, Waiting
from ordercast.protocols.fifo import FifoData
from ordercast.trace.holds import (
    UNKNOWN,
    HoldNote,
    WaitsFor,
    decode_note,
    encode_note,
    joined,
    lookup_among,
    named,
)
from ordercast.trace.schema import Event
from ordercast.trace.waits import longest_first, read_waits
from ordercast.trace.watch import MOST_KNOWN, Observed, Watch

G = 1
FIRST = Awaited("frame", G, 2, 1)
SECOND = Awaited("frame", G, 2, 2)
SILENT = Awaited("block", G, 3, 4)


class Names:
    def process(self, p: int) -> str:
        return f"p{p}#1"

    def group(self, g: int) -> str:
        return f"g{g}"

    def messages(self, payload: bytes) -> tuple[int, int]:
        first, _, count = payload.decode().partition("+")
        return int(first), int(count or 1)


class Script:
    """A machine that says what the test wants it to say."""

    def __init__(self) -> None:
        self.out = Output()
        self.held: list[Waiting] = []
        self.era = 1

    def step(self, events: Iterable[MachineEvent]) -> Output:
        return self.out

    def held_back(self) -> list[Waiting]:
        return self.held

    def view(self, g: int) -> View | None:
        return View(g, self.era, (1, 2, 3), 1, self.era)


class Scene:
    def __init__(self) -> None:
        self.machine = Script()
        self.rows: list[Observed] = []
        self.watch = Watch(self.machine, Names(), self.rows.append)

    def step(
        self, event: MachineEvent, held: list[Waiting], *delivered: tuple[int, int, int, int, bytes]
    ) -> list[Observed]:
        """What this step adds to the trace."""
        self.machine.held = held
        self.machine.out = Output()
        self.machine.out.deliveries = list(delivered)
        before = len(self.rows)
        self.watch.step((event,))
        return self.rows[before:]


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.step(Timer(G, "start"), [])
    scene.step(Timer(G, "start"), [], (G, 1, 1, 0, b"1"))  # an era is known by its first frame
    return scene


def packet(payload: bytes, src: int = 2) -> Receive:
    return Receive(src, G, 1, FifoData(1, 0), payload)


def holds(rows: list[Observed]) -> list[tuple[str, int, HoldNote]]:
    found = []
    for row in rows:
        if row.kind == "hold":
            note = decode_note(row.note)
            assert note is not None
            found.append((row.sender, row.first, note))
    return found


# -- names ----------------------------------------------------------------------------------------


def test_an_awaited_frame_that_is_here_is_named_by_its_messages() -> None:
    held = [Waiting(G, 2, 1, (SILENT,), b"5+3")]
    thing = named(FIRST, Names(), lookup_among(held, Names()))
    assert str(thing) == "messages p2#1/g1/5 to 7"


def test_an_awaited_frame_that_is_not_here_is_named_by_its_number() -> None:
    thing = named(FIRST, Names(), lambda frame: UNKNOWN)
    assert str(thing) == "frame 1 of p2#1 in g1"


def test_a_silent_member_is_named_with_the_block() -> None:
    assert str(named(SILENT, Names(), lambda frame: UNKNOWN)) == (
        "p3#1 to speak in g1 up to block 4"
    )


def test_where_nobody_in_particular_is_awaited_nobody_is_named() -> None:
    thing = named(Awaited("copies", G, NOBODY, 2), Names(), lambda frame: UNKNOWN)
    assert (thing.process, str(thing)) == ("", "copies from 2 more members of g1")


def test_of_many_things_the_first_few_are_told() -> None:
    things = [WaitsFor("frame", "g", "p", n) for n in range(1, 6)]
    assert joined(things) == "frame 1 of p in g, frame 2 of p in g and 3 more"
    assert joined(things[:2]) == "frame 1 of p in g and frame 2 of p in g"
    assert joined(()) == ""
    many = [WaitsFor("frame", "g", "p", number) for number in range(1, MAX_NAMED + 1)]
    assert joined(many).endswith(f" and at least {MAX_NAMED - 2} more")


def test_a_note_reads_back() -> None:
    note = HoldNote(3, (WaitsFor("frame", "g", "bob#1", 2),), by="FifoData from bob#1", text="t")
    assert decode_note(encode_note(note)) == note


@pytest.mark.parametrize("text", [None, "", "waits", "[1]", '{"frame": "x"}'])
def test_a_note_of_another_system_is_none_of_ours(text) -> None:
    assert decode_note(text) is None


# -- the watch ------------------------------------------------------------------------------------


def test_a_frame_that_begins_to_wait_is_recorded_with_what_it_waits_for(scene) -> None:
    m = b"7"
    rows = scene.step(packet(m), [Waiting(G, 2, 2, (FIRST,), m)])
    assert [(row.kind, row.sender, row.first, row.count) for row in rows] == [
        ("receive", "p2#1", 7, 1),
        ("hold", "p2#1", 7, 1),
    ]
    [(_, _, note)] = holds(rows)
    assert note.awaits == (WaitsFor("frame", "g1", "p2#1", 1),)
    assert note.text == "waits for frame 1 of p2#1 in g1"


def test_a_frame_that_goes_on_waiting_for_the_same_is_not_recorded_again(scene) -> None:
    waiting = Waiting(G, 2, 2, (FIRST,), b"7")
    scene.step(packet(b"7"), [waiting])
    assert scene.step(Timer(G, "ack"), [waiting]) == []


def test_a_frame_that_waits_for_something_else_is_recorded_with_what_came(scene) -> None:
    m = b"6"
    scene.step(packet(b"7"), [Waiting(G, 2, 3, (FIRST, SECOND), b"7")])
    rows = scene.step(packet(m), [Waiting(G, 2, 3, (SECOND,), b"7")], (G, 2, 1, 0, m))
    [(_, number, note)] = holds(rows)
    assert number == 7
    assert [thing.number for thing in note.awaits] == [2]
    assert [str(thing) for thing in note.gone] == ["message p2#1/g1/6"]


def test_a_frame_that_is_released_is_recorded_with_what_released_it(scene) -> None:
    m = b"6"
    scene.step(packet(b"7"), [Waiting(G, 2, 2, (FIRST,), b"7")])
    rows = scene.step(packet(m), [], (G, 2, 1, 0, m), (G, 2, 2, 0, b"7"))
    [(_, number, note)] = holds(rows)
    assert (number, note.awaits, note.delivered) == (7, (), True)
    assert note.by == "FifoData from p2#1 with message p2#1/g1/6"
    assert [str(thing) for thing in note.gone] == ["message p2#1/g1/6"]


def test_a_number_that_came_is_named_by_the_message_that_has_it(scene) -> None:
    number = Awaited("number", G, 1, 9)
    scene.step(packet(b"7"), [Waiting(G, 2, 2, (number,), b"7")])
    rows = scene.step(packet(b"4", 3), [], (G, 3, 1, 9, b"4"), (G, 2, 2, 10, b"7"))
    [(_, _, note)] = holds(rows)
    assert str(note.gone[0]) == "the sequencer's number 9 in g1 (message p3#1/g1/4)"


def test_a_frame_that_is_given_up_is_not_called_delivered(scene) -> None:
    scene.step(packet(b"7"), [Waiting(G, 2, 2, (FIRST,), b"7")])
    [(_, _, note)] = holds(scene.step(View(G, 2, (1,), 1, 2), []))
    assert (note.awaits, note.delivered, note.by) == ((), False, "a view change")


def test_a_frame_whose_body_comes_goes_on_as_the_same(scene) -> None:
    m, body = b"7", Awaited("body", G, 2, 1)
    rows = scene.step(packet(b""), [Waiting(G, 2, 1, (body, SECOND), b"")])
    assert [(row.kind, row.count) for row in rows] == [("receive", 0), ("hold", 0)]
    [(_, number, note)] = holds(scene.step(packet(m), [Waiting(G, 2, 1, (SECOND,), m)]))
    assert (number, [thing.what for thing in note.gone]) == (7, ["body"])


def test_a_message_of_a_former_era_is_not_taken_for_a_frame_of_this_one(scene) -> None:
    scene.step(packet(b"6"), [], (G, 2, 1, 0, b"6"))
    scene.machine.era = 2
    [(_, _, note)] = holds(scene.step(packet(b"9"), [Waiting(G, 2, 2, (FIRST,), b"9")]))
    assert str(note.awaits[0]) == "frame 1 of p2#1 in g1"


def test_a_remark_of_the_machine_names_the_messages_of_the_frame(scene) -> None:
    scene.step(packet(b"6+2"), [], (G, 2, 1, 0, b"6+2"))
    scene.machine.out.notes = [("retransmit", G, 2, 1, "to 3"), ("nack", G, 2, 8, "")]
    scene.machine.out.deliveries = []
    scene.rows.clear()
    scene.watch.step((Timer(G, "retry"),))
    assert scene.rows == [
        Observed("retransmit", "g1", "p2#1", 6, 2, "frame 1: to 3"),
        Observed("nack", "g1", "p2#1", 0, 0, "frame 8"),
    ]


def test_a_null_is_about_a_block_and_no_frame(scene) -> None:
    scene.step(packet(b"6"), [], (G, 1, 5, 0, b"6"))
    scene.machine.out.notes = [("null", G, 1, 5, "")]
    scene.machine.out.deliveries = []
    scene.rows.clear()
    scene.watch.step((Timer(G, "silence"),))
    assert scene.rows == [Observed("null", "g1", "p1#1", 0, 0, "block 5")]


def test_a_relayed_packet_is_recorded_under_its_origin(scene) -> None:
    m = b"6"
    [row] = scene.step(packet(m, src=3), [], (G, 2, 1, 0, m))
    assert (row.sender, row.first, row.note) == ("p2#1", 6, "FifoData from p3#1")


def test_what_is_known_of_old_frames_is_bounded(scene) -> None:
    for n in range(1, MOST_KNOWN + 10):
        scene.step(Multicast(G, b"1"), [], (G, 2, n, 0, b"1"))
    assert len(scene.watch.known[G]) == MOST_KNOWN


# -- the story of a wait --------------------------------------------------------------------------


def row(index: int, kind: str, message: str | None = None, **more: object) -> Event:
    sender = message.split("/")[0] if message else more.pop("sender", None)
    fields: dict[str, object] = {"time": 1000 * index, "group": "g", "sender": sender, **more}
    return Event("alice#1", index, kind, message, **fields)


def held(index: int, message: str | None, note: HoldNote, **more: object) -> Event:
    return row(index, "hold", message, note=encode_note(note), **more)


BOB_2 = WaitsFor("frame", "g", "bob#1", 2)
BOB_3 = WaitsFor("frame", "g", "bob#1", 3)


def test_a_wait_is_told_from_its_rows() -> None:
    [wait] = read_waits(
        [
            held(1, "bob#1/g/4", HoldNote(4, (BOB_2, BOB_3), by="A")),
            held(5, "bob#1/g/4", HoldNote(4, (BOB_3,), (BOB_2,), "B")),
            held(7, "bob#1/g/4", HoldNote(4, (), (BOB_3,), "C", delivered=True)),
            row(8, "deliver", "bob#1/g/3"),
            row(9, "deliver", "bob#1/g/4"),
            row(10, "end"),
        ]
    )
    assert (wait.process, wait.message, wait.frame) == ("alice#1", "bob#1/g/4", 4)
    assert [(s.at.index, s.awaits, s.by) for s in wait.stages] == [
        (1, (BOB_2, BOB_3), "A"),
        (5, (BOB_3,), "B"),
    ]
    assert (wait.gone, wait.by, wait.lasted) == ((BOB_3,), "C", 6000)
    assert wait.ended is not None and wait.ended.index == 7
    assert wait.delivered is not None and wait.delivered.index == 9


def test_a_wait_that_never_ends_lasts_until_the_log_does_and_comes_first() -> None:
    waits = read_waits(
        [
            held(1, "bob#1/g/4", HoldNote(4, (BOB_3,))),
            held(2, "bob#1/g/5", HoldNote(5, (BOB_3,))),
            held(8, "bob#1/g/4", HoldNote(4, (), (BOB_3,))),
            row(9, "crash"),
        ]
    )
    first, second = longest_first(waits)
    assert (first.message, first.ended, first.lasted, first.log_end) == (
        "bob#1/g/5", None, 7000, "crash",
    )  # fmt: skip
    assert (second.message, second.lasted) == ("bob#1/g/4", 7000)


def test_a_message_that_waits_twice_has_two_waits() -> None:
    first, second = read_waits(
        [
            held(1, "bob#1/g/4", HoldNote(4, (BOB_3,))),
            held(2, "bob#1/g/4", HoldNote(4, (), (BOB_3,), "a view change")),
            held(5, "bob#1/g/4", HoldNote(1, (BOB_2,))),
            held(8, "bob#1/g/4", HoldNote(1, (), (BOB_2,), "A", delivered=True)),
            row(9, "deliver", "bob#1/g/4"),
        ]
    )
    assert (first.lasted, first.delivered) == (1000, None)
    assert second.lasted == 3000 and second.delivered is not None


def test_an_order_whose_body_comes_later_gets_its_name_from_the_body() -> None:
    body = WaitsFor("body", "g", "bob#1", 2)
    [wait] = read_waits(
        [
            held(1, None, HoldNote(2, (body,)), sender="bob#1"),
            held(3, "bob#1/g/7", HoldNote(2, (), (body,), delivered=True)),
            row(4, "deliver", "bob#1/g/7"),
        ]
    )
    assert (wait.name, wait.delivered is not None) == ("bob#1/g/7", True)


def test_rows_of_another_system_give_a_wait_from_the_first_to_the_delivery() -> None:
    [wait] = read_waits(
        [
            row(1, "hold", "m2"),
            row(2, "hold", "m2", note="still"),
            row(3, "receive", "m1"),
            row(4, "deliver", "m2"),
        ]
    )
    assert (wait.message, wait.by, wait.lasted) == ("m2", "receive m1 (row 3)", 3000)


def test_logs_of_several_processes_and_runs_are_kept_apart() -> None:
    note = encode_note(HoldNote(4, (BOB_3,)))
    events = [
        Event(process, 1, "hold", "bob#1/g/4", "g", run, "bob#1", note=note)
        for run in ("a", "b")
        for process in ("x", "y")
    ]
    waits = [(wait.run, wait.process) for wait in read_waits(events)]
    assert waits == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
