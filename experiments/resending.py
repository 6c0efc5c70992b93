"""Asking for what is missing: constant limits against a window with back-off."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only, values
from ordercast.core.protocol import Options

TITLE = "Resending: constant limits against a window"
ABOUT = """\
`javagroups`, where each member asks the sequencer for the numbers that it misses. With constant
limits, as in the source, it asks in every period of 20 ms for the first 32 of them. With a window
each number has a back-off of its own, an answer ends the back-off of all, and the window moves on
with every answer (`machinery/resend_window.py`). The sequencer alone sends, so nothing but its
broadcasts, the requests for them and the answers matter. Three networks: one where a period is far
longer than a round trip, one where it is shorter, and one that loses nothing but cuts off one
member of three for a while, which then misses a run of numbers.

A difference counts if all seeds agree on it: the ratio of the window to constant limits is below 1
for each of them, or above, and its median is off by more than a hundredth. Otherwise no difference
is shown."""

LIMIT = Options().resend_window  # numbers that are asked for in a period
SLIGHT = 0.01  # a median ratio that is off by no more is no difference
WAYS = (("constant limits", True), ("window, back-off", False))


def figure(rows: list[Row]) -> Figure:
    panels = []
    for said, own in (("short round trip", near(rows)), ("long round trip", far(rows))):
        panels.append(_panel(f"Resends, {said}", "packets lost, per cent", "resends per message",
                             own, _by_loss(resends)))  # fmt: skip
        panels.append(_panel(f"Delay, {said}", "packets lost, per cent",
                             "ms from send to delivery, mean", own,
                             _by_loss("delay_mean_ms")))  # fmt: skip
    out = cut_off(rows)
    panels.append(_panel("Resends after an outage", "ms that a member is cut off",
                         "resends per message", out, _by_outage(resends)))  # fmt: skip
    panels.append(_panel("The last delivery after an outage", "ms that a member is cut off",
                         "ms from the first send", out, _by_outage("span_ms")))  # fmt: skip
    return Figure(TITLE, panels)


def claims(rows: list[Row]) -> list[Claim]:
    return [_against_loss(rows), _after_outage(rows)]


Points = Callable[[list[Row]], list[tuple[float, float, float, float]]]


def _panel(title: str, across: str, up: str, rows: list[Row], points: Points) -> Lines:
    lines = [Line(name, points(constantly(rows, constant=way))) for name, way in WAYS]
    return Lines(title, across, up, lines)


def _by_loss(value: Value) -> Points:
    return lambda rows: [(100 * x, y, a, b) for x, y, a, b in against(rows, "loss", value)]


def _by_outage(value: Value) -> Points:
    return lambda rows: against(rows, "outage_ms", value)


def constantly(rows: list[Row], *, constant: bool) -> list[Row]:
    """The runs with constant limits, or those with a window."""
    return [row for row in rows if ('"constant_resends":true' in row["options"]) == constant]


def cut_off(rows: list[Row]) -> list[Row]:
    """The runs with an outage."""
    return [row for row in rows if row["outage_ms"]]


def near(rows: list[Row]) -> list[Row]:
    """Loss, and a short round trip."""
    lossy = [row for row in rows if row["loss"]]
    return only(lossy, delay=min(distinct(lossy, "delay"), key=_longest_us))


def far(rows: list[Row]) -> list[Row]:
    """Loss, and a long round trip."""
    lossy = [row for row in rows if row["loss"]]
    return only(lossy, delay=max(distinct(lossy, "delay"), key=_longest_us))


def _longest_us(delay: str) -> float:
    return float(delay.split()[-1])


def resends(row: Row) -> float:
    """Messages that were sent again, by message."""
    return float(row["retransmissions"] / row["sent"])


def asked(row: Row) -> float:
    """Requests for a number, by message."""
    return float(row["remarks"].get("nack", 0) / row["sent"])


def in_vain(row: Row) -> float:
    """Messages that came again though they were here, by message."""
    return float(row["remarks"].get("drop", 0) / row["sent"])


def ratios(rows: list[Row], value: Value) -> list[float]:
    """Of the window to constant limits, by seed; 1 where neither has any."""
    found = []
    for seed in distinct(rows, "seed"):
        constant, window = (
            sum(values(constantly(only(rows, seed=seed), constant=way), value)) for _, way in WAYS
        )
        found.append(window / constant if constant else 1.0 if not window else float("inf"))
    return found


def sign(rows: list[Row], value: Value) -> int:
    """-1: less with a window; 1: more; 0: no difference is shown."""
    found = ratios(rows, value)
    if abs(median(found) - 1) <= SLIGHT:
        return 0
    return -1 if max(found) < 1 else 1 if min(found) > 1 else 0


def _told(of: int) -> str:
    return {-1: "less", 0: "none shown", 1: "more"}[of]


def _holds(signs: list[int]) -> Holds:
    """An enhancement has less of it: resends, or delay."""
    if not any(signs):
        return "no difference shown"
    return "yes" if 1 not in signs else "no" if -1 not in signs else "in part"


def _counted(signs: list[int]) -> str:
    return f"less in {signs.count(-1)} of {len(signs)} cases, more in {signs.count(1)}"


def _against_loss(rows: list[Row]) -> Claim:
    table: list[list[object]] = []
    resent, delayed = [], []
    for said, own in (("short", near(rows)), ("long", far(rows))):
        for loss in distinct(own, "loss"):
            at = only(own, loss=loss)
            ways = [constantly(at, constant=way) for _, way in WAYS]
            figures = [middle(way, f) for f in (asked, resends, in_vain) for way in ways]
            delays = [middle(way, "delay_mean_ms") for way in ways]
            resent.append(sign(at, resends))
            delayed.append(sign(at, "delay_mean_ms"))
            differ = (_told(resent[-1]), _told(delayed[-1]))
            table.append([said, 100 * loss, *figures, *delays, *differ])
    head = [
        "round trip", "% lost", "asked, constant", "window", "resent, constant", "window",
        "in vain, constant", "window", "delay, constant, ms", "window, ms",
        "difference in resends", "in delay",
    ]  # fmt: skip
    return Claim(
        claim="A windowed resend request structure with intelligent back-off would be an "
        "enhancement over constant request limits and timeouts.",
        where='003, "Future Improvements"',
        measured="Per message: requests, messages sent again, those of them that were there "
        f"already, and the mean delay.\n\n{markdown_table(head, table)}\n\n"
        f"With the window resends are {_counted(resent)}; delay is {_counted(delayed)}.",
        holds=_holds(resent + delayed),
        why="Where packets are lost one by one there are seldom more numbers missing than the "
        "limit, and a number is seldom missing for several periods: limits are not reached, and "
        "there is nothing to back off from. What is lost twice is asked for later by a back-off. "
        "Where a period is shorter than a round trip both ask for what is under way already; "
        "every answer ends the back-off, so there the window asks about as often. It gains where "
        "a gap is long (below).",
    )


def _after_outage(rows: list[Row]) -> Claim:
    own = cut_off(rows)
    table: list[list[object]] = []
    signs = []
    measures = (resends, "delay_mean_ms", "span_ms")
    for ms in distinct(own, "outage_ms"):
        at = only(own, outage_ms=ms)
        ways = [constantly(at, constant=way) for _, way in WAYS]
        missed = 1000 * ms / at[0]["every_us"]
        signs.append([sign(at, value) for value in measures])
        told = [_told(one) for one in signs[-1]]
        table.append(
            [ms, missed, *(middle(way, value) for value in measures for way in ways), *told]
        )
    head = [
        "cut off, ms", "numbers missed, about", "resent, constant", "window",
        "delay, constant, ms", "window, ms", "last delivery, constant, ms", "window, ms",
        "difference in resends", "in delay", "in the last delivery",
    ]  # fmt: skip
    resent, delayed, last = (list(each) for each in zip(*signs, strict=True))
    return Claim(
        claim="The same, for a long gap: the thread can make several requests in an iteration, up "
        "to a constant limit.",
        where='003, "Retransmission" and "Future Improvements"',
        measured="A member misses all that is sent while it is cut off. Per message, and until "
        f"the last member has the last message:\n\n{markdown_table(head, table)}\n\n"
        f"With the window delay is {_counted(delayed)}, the last delivery {_counted(last)}. Its "
        f"price: resends are {_counted(resent)}, {_price(own)}. The limit is {LIMIT} numbers.",
        holds=_holds(resent + delayed + last),
        why="A constant limit fills so many numbers in a period, however fast the answers come. "
        "The window moves on with each answer, and asks now and then for what is under way.",
    )


def _price(rows: list[Row]) -> str:
    """By how much more is sent again, at least and at most."""
    found = [
        100 * (median(ratios(only(rows, outage_ms=ms), resends)) - 1)
        for ms in distinct(rows, "outage_ms")
    ]
    return f"{min(found):+.1f} to {max(found):+.1f} % in the median"
