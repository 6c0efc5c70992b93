"""Rows that nobody has checked before: what cannot be judged is refused, not guessed."""

from __future__ import annotations

import pytest

from ordercast.errors import TraceError
from ordercast.judge.kernels.judge import judge_table
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table

GOOD = [Event("p", 1, "send", "a", "g"), Event("p", 2, "deliver", "a", "g"), Event("p", 3, "end")]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (Event(None, 9, "deliver", "a", "g"), "process"),
        (Event("q", None, "deliver", "a", "g"), "index"),
        (Event("q", 1, "send", None, "g"), "message"),
        (Event("q", 1, "deliver", None, "g"), "message"),
        (Event("q", 1, "deliver", "a", None), "group"),
        (Event("q", 1, "join"), "group"),
        (Event("q", 1, "view", None, "g", members=("q",)), "view"),
        (Event(None, None, "group", members=("q",)), "group"),
    ],
)
def test_a_row_that_lacks_a_column_it_needs_is_refused(row: Event, column: str) -> None:
    with pytest.raises(TraceError, match=f"a row of kind '{row.kind}' needs it") as refused:
        judge_table(event_table([*GOOD, row]))
    assert refused.value.column == column


@pytest.mark.parametrize("kind", ["sent", None])
def test_an_unknown_kind_is_refused(kind: str | None) -> None:
    row = Event("q", 1, kind)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match=f"unknown kind {kind!r}; known are send, deliver"):
        judge_table(event_table([*GOOD, row]))


def test_other_columns_may_be_absent() -> None:
    rows = [Event("q", 1, "receive"), Event("q", 2, "lost"), Event("q", 3, "crash")]
    assert len(judge_table(event_table([*GOOD, *rows]))) == 32
