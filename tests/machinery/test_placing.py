"""The queue of `agreed`: places are open at first, and are fixed later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.machinery.placing import PlacingQueue

A, B, C = (1, 1), (2, 1), (3, 1)


def taken(queue: PlacingQueue) -> list[bytes]:
    return [m for _, _, m in queue.take_first()]


def queue_of_three() -> PlacingQueue:
    queue = PlacingQueue()
    for number, id in enumerate((A, B, C), start=1):
        queue.put(id, (number, 0), f"{number}".encode())
    return queue


def test_the_first_is_taken_only_when_its_place_is_fixed() -> None:
    queue = queue_of_three()
    queue.fix(B, (2, 0))
    assert taken(queue) == []
    queue.fix(A, (1, 0))
    assert taken(queue) == [b"1", b"2"]
    assert queue.in_order() == [C]


def test_a_place_that_rises_lets_others_pass() -> None:
    queue = queue_of_three()
    queue.fix(A, (9, 9))
    queue.fix(B, (2, 0))
    assert taken(queue) == [b"2"]
    queue.fix(C, (3, 0))
    assert taken(queue) == [b"3", b"1"]
    assert (queue.keys, queue.bodies, queue.fixed, queue.heap) == ({}, {}, set(), [])


def test_a_place_is_open_until_it_is_fixed() -> None:
    queue = queue_of_three()
    queue.fix(B, (2, 5))
    assert (queue.is_open(A), queue.is_open(B), queue.is_open((9, 9))) == (True, False, False)


@given(st.permutations(range(6)), st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_in_whatever_order_places_are_fixed_messages_come_by_their_last_key(
    order: list[int], rises: list[int]
) -> None:
    queue = PlacingQueue()
    for i in range(6):
        queue.put((i, 1), (i, 0), b"")
    came = []
    for i in order:
        queue.fix((i, 1), (i + rises[i], i))
        came += [key for _, key, _ in queue.take_first()]
    assert came == sorted((i + rises[i], i) for i in range(6))
