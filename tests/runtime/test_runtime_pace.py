"""How much of its window a group uses: what its members consume in half a second."""

from __future__ import annotations

from ordercast.runtime.window import FIRST_BYTES, LEAST_BYTES, PERIOD_SECONDS, TARGET_SECONDS, Pace

SIZE = 4 * 1024 * 1024


def consume(pace: Pace, rate: float, under_way: float, seconds: float, now: float = 0.0) -> float:
    """Members consume at this rate, and a frame is under way for so long; when it ends."""
    for _ in range(round(seconds / PERIOD_SECONDS)):
        now += PERIOD_SECONDS * 1.001
        pace.consumed(int(rate * PERIOD_SECONDS), under_way, now)
    return now


def test_a_window_whose_frames_are_consumed_in_time_is_used_as_it_is() -> None:
    pace = Pace(SIZE)
    consume(pace, rate=1e9, under_way=TARGET_SECONDS / 10, seconds=2)
    assert pace.allowed == SIZE


def test_a_window_that_is_a_queue_shrinks_to_what_is_consumed_in_the_target() -> None:
    pace = Pace(SIZE)
    now = consume(pace, rate=2e6, under_way=0.01, seconds=0.5)
    consume(pace, rate=2e6, under_way=2.0, seconds=1, now=now)
    assert 0.9 < pace.allowed / (2e6 * TARGET_SECONDS) < 1.1


def test_a_slow_reader_leaves_the_least_and_a_quick_one_gives_the_window_back() -> None:
    pace = Pace(SIZE)
    now = consume(pace, rate=1000, under_way=0.01, seconds=0.5)
    now = consume(pace, rate=1000, under_way=5.0, seconds=1, now=now)
    assert pace.allowed == LEAST_BYTES
    consume(pace, rate=1e7, under_way=0.1, seconds=4, now=now)
    assert pace.allowed == SIZE


def test_a_long_line_is_no_queue() -> None:
    pace = Pace(SIZE)
    consume(pace, rate=1e6, under_way=0.8, seconds=5)
    assert pace.allowed == SIZE


def test_members_share_a_window_at_first_and_it_grows_with_what_is_consumed_in_time() -> None:
    pace = Pace(SIZE)
    for members, allowed in (
        (0, SIZE),
        (1, SIZE),
        (2, SIZE // 2),
        (16, FIRST_BYTES),
        (200, FIRST_BYTES),
    ):
        pace.share(members)
        assert pace.allowed == allowed
    consume(pace, rate=1e4, under_way=0.01, seconds=2)  # a word now and then proves little
    assert pace.allowed < 1.2 * FIRST_BYTES
    pace.consumed(FIRST_BYTES, 0.01, 10.0)
    assert pace.allowed > 2 * FIRST_BYTES
    pace.share(16)
    assert pace.allowed > 2 * FIRST_BYTES


def test_a_small_window_does_not_grow() -> None:
    pace = Pace(1000)
    now = consume(pace, rate=100, under_way=0.01, seconds=0.5)
    consume(pace, rate=100, under_way=5.0, seconds=1, now=now)
    assert pace.allowed == 1000
