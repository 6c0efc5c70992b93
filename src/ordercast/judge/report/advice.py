"""Why something could not be decided, and what would decide it."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.judge.outcome import RunOutcome, Table
from ordercast.judge.report.markup import Markup, element, joined, listed, prose, table
from ordercast.judge.report.verdicts import in_short
from ordercast.trace.schema import PROPERTIES

MOST_REASONS = 3  # per property
_NO_END = (
    "A log that says it is complete. Let the process drain and close before the recording stops, "
    "so that it ends with an `end` row. If you know that nothing was cut off, verify with "
    "`--quiescent`."
)
_LOST = (
    "A run without lost records. Lost records cannot be recovered: record again, to a faster disk "
    "or with fewer messages at a time."
)
_INCOMPLETE = (
    "The whole log of the sender: add the missing files, or record again until every process has "
    "closed."
)
_KINDS = (
    (("views", "vsync", "sending_view"), "view"),
    (("validity",), "send"),
    (("fifo.", "causal."), "send` and `deliver"),
)
_UNKNOWN_ORDER = (
    "No such order is known here. Name the properties that you want with `--expect`, for example "
    "`--expect total.group`."
)


def undecided(run: RunOutcome) -> Markup:
    """A table of what is open: why, and what would decide it. Empty if nothing is."""
    rows: dict[tuple[str, str], list[str]] = {}
    for own in (run.table, *(part for _, part in run.domains)):
        for name, why in _doubts(own):
            names = rows.setdefault((why, _remedy(why)), [])
            names += [name] if name not in names else []
    for one in run.expected:
        if one.verdict == "n/a":
            rows.setdefault(_nothing_to_judge(one.property), []).append(one.property)
    if not rows:
        return Markup()
    cells = [
        [listed([in_short(name) for name in names]), why, prose(remedy)]
        for (why, remedy), names in rows.items()
    ]
    return joined(
        element("p", "Undecided does not mean broken: the trace lacks what would decide it.",
                class_="soft"),
        table(["property", "why it is open", "what would decide it"], cells,
              label="Why some properties are undecided", class_="wordy"),
    )  # fmt: skip


def _doubts(own: Table) -> Iterable[tuple[str, str]]:
    for name, reasons in own.doubts.items():
        if own.verdicts[name] == "inconclusive":
            yield from ((name, reason) for reason in reasons[:MOST_REASONS])


def _remedy(reason: str) -> str:
    """By what the reason ends with."""
    if "lost" in reason.rpartition(";")[2]:
        return _LOST
    if "incomplete" in reason.rpartition(";")[2]:
        return _INCOMPLETE
    return _NO_END


def _nothing_to_judge(name: str) -> tuple[str, str]:
    if name not in PROPERTIES:
        return f"the trace promises the order “{name}”", _UNKNOWN_ORDER
    kinds = next((kinds for starts, kinds in _KINDS if name.startswith(starts)), "deliver")
    return f"there are no {kinds.replace('`', '')} rows", f"A trace that records `{kinds}` events."
