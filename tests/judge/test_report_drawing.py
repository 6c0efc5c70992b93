"""What the drawings of the report are made of: columns, lines, labels, axes, ways of arrows."""

from __future__ import annotations

from random import Random

import pytest

from notation import trace
from ordercast.judge.report.layout import Layout
from ordercast.judge.report.names import Names
from ordercast.judge.report.routing import bend, bow
from ordercast.judge.report.scale import Scale, compact, duration, round_steps
from ordercast.judge.report.scene import MOST_EVENTS, Scene, natural, scene
from random_traces import random_traces
from reported import OPPOSITE, SWAPPED, table_of


def witness_of(text: str, name: str) -> dict[str, object]:
    return next(v.witness for v in table_of(trace(text)).violations if v.property == name)


def event(process: str, index: int, kind: str, message: str = "") -> dict[str, object]:
    return {"process": process, "index": index, "kind": kind, "message": message}


# The scene.


def test_an_event_lies_right_of_its_predecessor_and_of_its_send() -> None:
    drawn = 0
    for events in random_traces(Random(7), 60):
        table = table_of(events)
        scenes = [scene(violation.witness) for violation in table.violations]
        for found in scenes if table.verdicts["wellformed"] == "ok" else []:
            if found is not None:
                drawn += 1
                assert_columns_grow(found)
    assert drawn > 100


def assert_columns_grow(found: Scene) -> None:
    by_log: dict[str, list[int]] = {}
    for point in sorted(found.points, key=lambda point: point.index):
        by_log.setdefault(point.process, []).append(point.column)
        send = found.sends.get(point.message)
        if point.kind == "deliver" and send:
            assert point.column > send.column
    assert all(sorted(set(columns)) == columns for columns in by_log.values())


def test_a_delivery_before_its_own_send_is_drawn_where_its_log_has_it() -> None:
    events = [event("p", 1, "deliver", "a"), event("p", 2, "send", "a")]
    found = scene({"events": events})
    assert found is not None
    assert [point.column for point in found.points] == [0, 1]


def test_who_broke_the_promise_stands_below_the_senders() -> None:
    found = scene(witness_of(SWAPPED.replace("q:", "a:"), "fifo.group"))
    assert found is not None and found.processes == ("p", "a")


def test_along_a_cycle_a_sender_stands_above_who_delivers_its_message_first() -> None:
    found = scene(witness_of(OPPOSITE, "total.group"))
    assert found is not None
    assert found.processes in (("s", "p", "t", "q"), ("t", "q", "s", "p"))


def test_a_witness_without_events_or_with_too_many_is_not_drawn() -> None:
    assert scene({"process": "p", "index": 3}) is None
    many = [event("p", k, "deliver", f"m{k}") for k in range(MOST_EVENTS + 1)]
    assert scene({"events": many}) is None
    assert scene({"events": many[1:]}) is not None


def test_the_second_delivery_is_the_broken_one_of_a_duplicate() -> None:
    found = scene(witness_of("p: send a g; deliver a g; deliver a g; end", "no_duplication"))
    assert found is not None
    assert [point.index for point in found.points if point.broken] == [3]


def test_p2_comes_before_p10_and_numbers_may_be_huge() -> None:
    names = ["p10", "p2", "p", "q1", "p" + "9" * 5000]
    assert sorted(names, key=natural) == ["p", "p2", "p10", "p" + "9" * 5000, "q1"]


# Names.


def test_different_names_never_share_a_label() -> None:
    names = Names(longest=9)
    labels = [names.label(f"{'x' * 20}{k}{'y' * 20}") for k in range(20)]
    assert len(set(labels)) == 20 and names.label("short") == "short"
    assert len(names.changed()) == 20


# The layout.


def test_neighbouring_labels_have_room_whatever_their_length() -> None:
    witness = {
        "events": [event("p", 1, "send", "m" * 22), event("p", 2, "send", "広い" * 11)],
    }
    found = scene(witness)
    assert found is not None
    names = Names()
    layout = Layout(found, names)
    first, second = (layout.text(point).box for point in found.points)
    assert first[2] < second[0]


def test_an_arrow_goes_round_what_lies_on_its_way() -> None:
    start, end, dot = (0.0, 0.0), (200.0, 100.0), (90.0, 40.0, 110.0, 60.0)
    assert bend(start, end, []) == (100, 50)
    assert bend(start, end, [dot]) != (100, 50)


def test_an_arrow_on_one_line_goes_below_it_or_above_where_there_is_room() -> None:
    start, end = (0.0, 0.0), (100.0, 0.0)
    assert bow(start, end, [])[1] > 0
    assert bow(start, end, [(40.0, 5.0, 60.0, 25.0)])[1] < 0


# Axes.


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0"), (0.4, "0"), (950, "950 ns"), (1_500_000, "1.5 ms"), (-2e9, "-2 s"),
        (5_000_000_000_000, "5,000 s"),
    ],
)  # fmt: skip
def test_durations_have_the_unit_that_reads_best(nanoseconds: float, text: str) -> None:
    assert duration(nanoseconds) == text


def test_large_numbers_are_written_in_few_signs() -> None:
    assert [compact(n) for n in (0, 950, 1234, 35e6)] == ["0", "950", "1.23 k", "35 M"]


def test_steps_are_round_and_few() -> None:
    assert round_steps(0, 10) == [0, 2, 4, 6, 8, 10]
    assert round_steps(-3, 3) == [-2, 0, 2]


@pytest.mark.parametrize(
    "values",
    [[0], [0, 0], [5], [0, 1], [-3, 8], [-9, -2], [1, 10**12], [0, 1, 10**12], [10**6, 2 * 10**6]],
)
def test_every_value_and_every_mark_lies_on_the_axis(values: list[float]) -> None:
    scale = Scale(values)
    marks = scale.marks()
    assert 1 <= len(marks) <= 9
    assert all(-1e-9 <= scale.share(value) <= 1 + 1e-9 for value in [*values, *marks])


def test_times_far_apart_are_drawn_by_powers_of_ten_and_negative_ones_never() -> None:
    assert Scale([1, 1000]).logarithmic and Scale([0, 1, 1000]).logarithmic
    assert not Scale([-1, 1000]).logarithmic and not Scale([500, 1000]).logarithmic
