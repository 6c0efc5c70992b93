"""The prefix guarantee: what survivors of a view have without a flush, and with one."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, distinct, only, values

TITLE = "The prefix guarantee without a flush"
ABOUT = """\
`javagroups` with six members, all of which send. Half-way one crashes, and the view changes while
messages are under way. Without a flush, as in the source, each survivor clears its queue and begins
the next view with what it has; what was under way is not asked for again. With a flush all get what
any of them holds, and the others' requests are repeated. Either way the nodes agree on the view in
the same rounds of packets, and the crash is noticed after 100 ms. Without a flush a run counts as
kept if nothing was delivered twice, invented or delivered to outsiders, and all deliveries are in
one order: that is all that the source guarantees then. What survivors lack is counted, and how long
it takes from the crash until all survivors have the next view."""

WAYS = (("without a flush", False), ("with a flush", True))


def figure(rows: list[Row]) -> Figure:
    return Figure(
        TITLE,
        [
            _panel("Runs in which survivors differ", "% of the runs", rows, "uneven", _share),
            _panel("Messages that only some have", "messages, mean of runs", rows, "uneven", _mean),
            _panel(
                "Deliveries that are lacking", "deliveries, mean of runs", rows, "lacking", _mean
            ),
            _panel(
                "Messages that vanished",
                "messages of survivors, mean of runs",
                rows,
                "vanished",
                _mean,
            ),
            _panel(
                "The view change",
                "ms from the crash to the view at all survivors, mean",
                rows,
                "view_change_ms",
                _mean,
            ),
        ],
        shows="shares of them and means over them",
    )


def claims(rows: list[Row]) -> list[Claim]:
    return [_prefix(rows), _flush(rows)]


Together = Callable[[list[Row], str], float]
"""One number of several runs."""


def _panel(title: str, up: str, rows: list[Row], column: str, of: Together) -> Lines:
    lines = [Line(name, _by_loss(only(rows, flush=way), column, of)) for name, way in WAYS]
    return Lines(title, "packets lost, per cent", up, lines, even_steps=True)


def _by_loss(rows: list[Row], column: str, of: Together) -> list[tuple[float, float, float, float]]:
    found = [(100 * loss, of(only(rows, loss=loss), column)) for loss in distinct(rows, "loss")]
    return [(x, y, y, y) for x, y in found]


def _share(rows: list[Row], column: str) -> float:
    """Per cent of the runs with any."""
    found = values(rows, column)
    return 100 * sum(value > 0 for value in found) / len(found)


def _mean(rows: list[Row], column: str) -> float:
    found = values(rows, column)
    return sum(found) / len(found)


def _table(rows: list[Row]) -> str:
    head = [
        "% lost", "runs", "% of runs that differ", "messages only some have", "deliveries lacking",
        "vanished", "survivors without a prefix",
    ]  # fmt: skip
    lines: list[list[object]] = []
    for loss in distinct(rows, "loss"):
        own = only(rows, loss=loss)
        means = [_mean(own, column) for column in ("uneven", "lacking", "vanished", "no_prefix")]
        lines.append([100 * loss, len(own), _share(own, "uneven"), *means])
    return markdown_table(head, lines)


def _prefix(rows: list[Row]) -> Claim:
    own = only(rows, flush=False)
    differ = _share(own, "uneven") > 0
    ordered = not sum(values(own, "no_prefix"))
    return Claim(
        claim="Without a flush protocol the TOTAL layer guarantees total order only for a prefix "
        "of the messages in one view: at its end some servers may not receive what others do.",
        where='003, "Future Improvements"',
        measured="Without a flush, means over the runs; the last column counts survivors whose "
        "deliveries in a view are not the first of those that another has:\n\n" + _table(own),
        holds="yes" if differ and ordered else "in part" if ordered else "no",
        why="The prefix is all that is left: messages also vanish altogether, since a request "
        "under way is not repeated, and a later message of its sender is delivered nevertheless."
        if ordered
        else "Survivors delivered the messages of a view in different orders.",
    )


def _flush(rows: list[Row]) -> Claim:
    own = only(rows, flush=True)
    same = not sum(values(own, "uneven") + values(own, "vanished") + values(own, "no_prefix"))
    table: list[list[object]] = []
    later = []
    for loss in distinct(rows, "loss"):
        at = only(rows, loss=loss)
        ways = [median(values(only(at, flush=way), "view_change_ms")) for _, way in WAYS]
        longer = _longer(at)
        later.append(median(longer) > 0)
        table.append([100 * loss, *ways, median(longer), sum(ms > 0 for ms in longer), len(longer)])
    head = [
        "% lost", "without a flush, ms", "with a flush, ms", "longer by, ms", "seeds: longer", "of",
    ]  # fmt: skip
    return Claim(
        claim="A flush protocol would delay the view change until all members of the group are "
        "synchronized.",
        where='003, "Future Improvements"',
        measured=f"With a flush:\n\n{_table(own)}\n\nFrom the crash until all survivors have the "
        "next view, medians; by how much longer it takes with a flush, median over pairs of runs "
        f"of one seed, which are the same until the crash:\n\n{markdown_table(head, table)}\n\n"
        "Yes if survivors differ in nothing and the view comes later at every rate of loss.",
        holds="yes" if same and all(later) else "in part" if same or all(later) else "no",
        why=_why(same=same, later=all(later)),
    )


def _longer(rows: list[Row]) -> list[float]:
    """By how many ms the view change takes longer with a flush, by seed."""
    found = []
    for seed in distinct(rows, "seed"):
        [without], [with_one] = (
            values(only(rows, seed=seed, flush=way), "view_change_ms") for _, way in WAYS
        )
        found.append(with_one - without)
    return found


def _why(*, same: bool, later: bool) -> str:
    if not same:
        return "Survivors differ in spite of it."
    if not later:
        return "The view does not come later everywhere."
    return (
        "The delay is small where nothing is lost: survivors report the ids of what they hold with "
        "the packets by which they agree on the view, and fetch only what they lack. Where packets "
        "are lost, any of these may have to be sent again, and the view waits for the last."
    )
