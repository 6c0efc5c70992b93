"""Number sets and slowest marks against the obvious models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.numbers import NumberSet, SlowestMark, ViewNumbers
from ordercast.errors import PeerError


@given(st.lists(st.integers(1, 20)))
def test_a_number_set_is_a_set(numbers: list[int]) -> None:
    ours, model = NumberSet(100), set[int]()
    for n in numbers:
        assert ours.add(n) == (n not in model)
        model.add(n)
        assert [k in ours for k in range(1, 25)] == [k in model for k in range(1, 25)]
        assert set(range(1, ours.mark + 1)) <= model
        assert ours.mark + 1 not in model  # what is an interval takes no memory
        assert ours.early == {n for n in model if n > ours.mark}


def test_a_number_too_far_above_the_mark_is_the_peers_fault_and_changes_nothing() -> None:
    numbers = NumberSet(5)
    assert numbers.add(1)
    assert numbers.add(6)
    before = numbers.fingerprint()
    with pytest.raises(PeerError, match="more than 5 above 1"):
        numbers.add(7)
    assert numbers.fingerprint() == before


marks = st.tuples(
    st.sampled_from(["raise", "raise", "raise", "forget"]),
    st.integers(0, 3),
    st.integers(0, 6),
)


@given(st.lists(marks))
def test_the_lowest_mark_is_the_minimum_of_all_marks(steps: list[tuple[str, int, int]]) -> None:
    ours, model = SlowestMark((0, 1), 0), {0: 0, 1: 0}
    lowest = 0
    for what, p, height in steps:
        rose = None
        if what == "raise":
            rose = ours.raise_to(p, height)
            if p in model:
                model[p] = max(model[p], height)
        else:
            rose = ours.forget(p)
            model.pop(p, None)
        before, lowest = lowest, min(model.values(), default=lowest)
        assert ours.lowest == lowest
        assert ours.marks == model
        assert rose is None or rose == (lowest > before)


def test_without_members_the_lowest_mark_stays_where_it_was() -> None:
    marks = SlowestMark((1,), 3)
    assert not marks.forget(1)
    assert marks.lowest == 3


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(2, 64), st.data())
def test_where_every_side_goes_on_no_two_leaders_give_the_same_number(
    before: int, other: int, stride: int, data: st.DataObject
) -> None:
    one, two = data.draw(st.lists(st.integers(0, stride - 1), min_size=2, max_size=2, unique=True))
    numbers = ViewNumbers(0, stride)
    first, second = numbers.after(before, one), numbers.after(other, two)
    assert before < first <= before + 2 * stride
    assert first != second
    assert (first % stride, second % stride) == (one, two)
