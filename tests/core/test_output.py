"""Effects as columns."""

from __future__ import annotations

from ordercast.core.output import Output


def test_clearing_gives_new_columns_so_that_what_was_handed_over_stays() -> None:
    out = Output()
    out.deliveries.append((1, 2, 3, 0, b"m"))
    out.transmits.append(((2,), 1, 1, None, b""))  # type: ignore[arg-type]
    out.timers.append((1, "ack", 5))
    out.stable.append((1, 1))
    out.guest.append((1, True))
    out.ordered.append((1, 1))
    out.faults.append((2, "x"))
    out.notes.append(("drop", 1, 2, 0, ""))
    columns = [getattr(out, name) for name in Output.__slots__]
    out.clear()
    assert all(len(column) == 1 for column in columns)
    assert all(getattr(out, name) == [] for name in Output.__slots__)
