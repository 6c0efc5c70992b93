"""Which messages a state holds: ranges against plain sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.runtime import consumed_messages
from ordercast.runtime.consumed_messages import ConsumedMessages

runs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 5)), max_size=30)


def built(frames: list[tuple[int, int, int]]) -> tuple[ConsumedMessages, set[tuple[int, int]]]:
    ranges, plain = ConsumedMessages(), set()
    for sender, first, count in frames:
        ranges.add(sender, first, count)
        plain |= {(sender, first + step) for step in range(count)}
    return ranges, plain


@given(runs, runs)
def test_ranges_say_what_a_set_says(some, more) -> None:
    one, plain_one = built(some)
    two, plain_two = built(some + more)
    assert two.messages == len(plain_two)
    numbers = [(sender, number) for sender in range(4) for number in range(50)]
    assert {pair for pair in numbers if two.has(*pair)} == plain_two
    assert two.covers(one) and one.covers(two) == (plain_one == plain_two)
    assert ConsumedMessages(two.plain()).plain() == two.plain()


def test_messages_in_order_are_one_range() -> None:
    frames = ConsumedMessages()
    for first in range(0, 100, 5):
        frames.add(7, first, 5)
    assert frames.plain() == ((7, ((0, 99),)),)


def test_what_cannot_be_said_any_more_is_seen(monkeypatch) -> None:
    monkeypatch.setattr(consumed_messages, "MAX_RANGES", 3)
    frames = ConsumedMessages()
    for number in (1, 3, 5):
        frames.add(0, number, 1)
    assert not frames.overfull
    frames.add(1, 9, 1)
    assert frames.overfull
