"""How long to wait for an answer: without a clock, from what came before the timer rang."""

from __future__ import annotations

from ordercast.core.patience import LONGEST, Patience


def messages(patience: Patience, round_trip_ms: int, count: int) -> list[int]:
    """How often the word is repeated for each of these messages, if nothing is lost."""
    repeats = []
    for _ in range(count):
        waited, said = patience.wait, 0
        while waited < round_trip_ms:
            patience.said_again()
            waited, said = waited + patience.wait, said + 1
        patience.answered()
        repeats.append(said)
    return repeats


def test_the_wait_doubles_while_there_is_no_answer_up_to_a_limit() -> None:
    patience = Patience(50, 200)
    waits = []
    for _ in range(8):
        waits.append(patience.wait)
        patience.said_again()
    assert waits == [50, 100, 200, 400, 800, LONGEST * 200, LONGEST * 200, LONGEST * 200]


def test_after_a_late_answer_the_next_question_is_given_as_long() -> None:
    patience = Patience(2, 5000)
    first, *others = messages(patience, 300, 100)
    assert first > 4
    assert sum(others) <= 25
    assert max(others) == 1


def test_on_a_fast_line_nothing_is_ever_repeated_or_learned() -> None:
    patience = Patience(2, 5000)
    assert sum(messages(patience, 1, 100)) == 0
    assert patience.wait == 2


def test_a_line_that_becomes_fast_again_is_noticed() -> None:
    patience = Patience(2, 5000)
    messages(patience, 300, 10)
    messages(patience, 1, 100)
    assert patience.wait == 2


def test_what_is_learned_has_a_limit() -> None:
    patience = Patience(50, 200)
    messages(patience, 10_000, 10)
    assert patience.wait == 200
