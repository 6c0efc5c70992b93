"""Effects as columns."""

from __future__ import annotations

from ordercast.core.events import View
from ordercast.core.output import Output
from ordercast.machinery.sequencer_headers import Accepted


def test_clearing_gives_new_columns_so_that_what_was_handed_over_stays() -> None:
    out = Output()
    out.deliveries.append((1, 2, 3, 0, b"m"))
    out.transmits.append(((2,), 1, 1, None, b""))  # type: ignore[arg-type]
    out.timers.append((1, "ack", 5))
    out.stable.append((1, 1))
    out.guest.append((1, True))
    out.ordered.append((1, 1))
    out.faults.append((2, "x"))
    out.conflicts.append((1, 2, 1, 3))
    out.notes.append(("drop", 1, 2, 0, ""))
    out.words[2, 1, 1, View] = 0
    out.eras.append((0, View(1, 1, (1,), 1)))
    out.news.append(View(1, 1, (1,), 1))
    columns = [getattr(out, name) for name in Output.__slots__]
    out.clear()
    assert all(len(column) == 1 for column in columns)
    assert not any(getattr(out, name) for name in Output.__slots__)


def test_of_several_words_to_one_process_the_last_leaves_where_the_first_stood() -> None:
    out = Output()
    for p, stable in ((2, 0), (3, 0), (2, 1), (2, 2)):
        out.send_word(p, 1, 1, Accepted(2, stable))
    out.send_word(2, 1, 2, Accepted(2, 0))
    assert out.transmits == [
        ((2,), 1, 1, Accepted(2, 2), b""),
        ((3,), 1, 1, Accepted(2, 0), b""),
        ((2,), 1, 2, Accepted(2, 0), b""),  # another era
    ]
    out.clear()
    out.send_word(2, 1, 1, Accepted(3, 3))
    assert out.transmits == [((2,), 1, 1, Accepted(3, 3), b"")]
