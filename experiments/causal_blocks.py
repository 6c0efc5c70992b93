"""Causal Blocks: the size of a timestamp against the delay, over the degree of overlap."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only

TITLE = "Causal Blocks: timestamp against delay"
ABOUT = """\
Twelve members in six groups on a ring; the groups grow, so that a member is in one to four of them.
A message every half millisecond on average, packets of very different delay, in order between each
two processes, none lost: nobody needs links. Nobody fails, as the source assumes, so no message
waits for a second holder (`resilience = 0`). `fast` has its vector by group and process, since the
printed one blocks (erratum E-M3); `fast_p` has the printed vector with a test that does not block.
Once more all members are in one group; there also on a network where packets overtake each other.
Vectors carry only what is news. A member with nothing to say sends NULL after 20 ms. The seed fixes
who sends what and when, so all get the same messages."""

EXACT = ("fast", "cbcast")
FORMS = ("fast", "fast_p")  # of Fast


def figure(rows: list[Row]) -> Figure:
    own = overlapping(rows)
    names = in_order(own)
    panels = [
        ("Timestamp", "header bytes of a packet with a message, mean", "header_mean_bytes"),
        ("Delay", "ms from send to delivery, mean", "delay_mean_ms"),
    ]
    return Figure(
        TITLE,
        [
            Lines(
                title,
                "groups that a member is in",
                up,
                [Line(n, against(only(own, protocol=n), "overlap", column)) for n in names],
            )
            for title, up, column in panels
        ],
    )


def claims(rows: list[Row]) -> list[Claim]:
    return [_trade(rows), _one_group(rows)]


def overlapping(rows: list[Row]) -> list[Row]:
    """The runs with several groups."""
    return [row for row in rows if row["groups"] > 1]


def in_order(rows: list[Row]) -> list[str]:
    """The protocols of the rows, the smallest timestamp first."""
    most = max(distinct(rows, "overlap"))
    return sorted(
        distinct(rows, "protocol"),
        key=lambda p: middle(rows, "header_mean_bytes", protocol=p, overlap=most),
    )


def _trade(rows: list[Row]) -> Claim:
    own = overlapping(rows)
    degrees = [overlap for overlap in distinct(own, "overlap") if overlap > 1]
    names = in_order(own)
    table: list[list[object]] = [
        [
            f"`{name}`",
            *(middle(own, "header_mean_bytes", protocol=name, overlap=o) for o in degrees),
            *(middle(own, "delay_mean_ms", protocol=name, overlap=o) for o in degrees),
        ]
        for name in names
    ]
    head = [
        "",
        *(f"bytes, {o:g} groups" for o in degrees),
        *(f"ms, {o:g} groups" for o in degrees),
    ]
    kept = {fast: all(_in_between(own, fast, o) for o in degrees) for fast in FORMS}
    cheaper = all(
        middle(own, "header_mean_bytes", protocol="cbcast", overlap=o)
        <= middle(own, "header_mean_bytes", protocol="fast", overlap=o)
        for o in degrees
    )
    holds: Holds = "yes" if all(kept.values()) else "in part" if any(kept.values()) else "no"
    said = (
        "CBCAST has the delay of `fast` with a header that is nowhere larger. " if cheaper else ""
    )
    return Claim(
        claim="Slow has the smallest timestamp and the longest delay, Fast the largest timestamp "
        "and the shortest delay; Relative lies between them in both.",
        where="004, sections 5 and 6",
        measured="Header bytes of a packet with a message, and mean delay from send to delivery, "
        f"where a member is in so many groups:\n\n{markdown_table(head, table)}",
        holds=holds,
        why=" ".join(_between(fast, kept=kept[fast]) for fast in FORMS)
        + f" {said}`fast` is CBCAST with other numbers in its vectors. What Slow and Relative "
        "spare in the header they pay twice: they wait for a word of every member, and a silent "
        "one says it [after a fixed time](#causal-blocks-the-price-of-silence), in a packet of its "
        "own.",
    )


def _in_between(rows: list[Row], fast: str, overlap: float) -> bool:
    """Slow, Relative and this form of Fast: each has more bytes than the one before, and waits
    less."""
    at = only(rows, overlap=overlap)
    sizes, delays = (
        [middle(at, column, protocol=p) for p in ("slow", "relative", fast)]
        for column in ("header_mean_bytes", "delay_mean_ms")
    )
    return sizes == sorted(sizes) and delays == sorted(delays, reverse=True)


def _between(fast: str, *, kept: bool) -> str:
    form = {"fast": "by group and process", "fast_p": "by process, as it is printed"}[fast]
    found = "lies" if kept else "does not lie"
    return f"Relative {found} between Slow and Fast with a vector {form} (`{fast}`)."


def _one_group(rows: list[Row]) -> Claim:
    own = only(rows, groups=1)
    names = [name for name in in_order(overlapping(rows)) if only(own, protocol=name)]
    ordered, overtaking = only(own, fifo=True), only(own, fifo=False)
    table: list[list[object]] = [
        [
            f"`{name}`",
            middle(ordered, "header_mean_bytes", protocol=name),
            middle(ordered, "delay_mean_ms", protocol=name),
            middle(ordered, "hold_back_mean_ms", protocol=name),
            100 * middle(ordered, "needless_share", protocol=name),
            middle(overtaking, "hold_back_mean_ms", protocol=name),
            100 * middle(overtaking, "needless_share", protocol=name),
        ]
        for name in names
    ]
    head = [
        "one group", "header bytes", "delay, ms", "held back, ms", "% of it needless",
        "overtaking: held back, ms", "% of it needless",
    ]  # fmt: skip
    early = max(row["needless_ms"] for row in only(ordered, protocol="relative")) == 0
    linked = max(row["needless_ms"] for row in only(overtaking, protocol="relative")) > 0
    said = (
        "The source takes it for granted that packets of one process to another arrive in order. "
        "Where they do not, links keep that order, and a message that overtakes another packet of "
        "its sender, mostly an acknowledgement, waits for it in the link. Relative needs such "
        "links, CBCAST does not. This wait is the network's, and no wait for a block."
    )
    return Claim(
        claim="Relative delivers as early as possible where there is one group; extra delay comes "
        "only with several.",
        where="004, section 6",
        measured="All members in one group; packets arrive in order, as the source assumes, or "
        f"overtake each other:\n\n{markdown_table(head, table)}",
        holds="yes" if early else "no",
        why=said * linked if early else "It waited though everything it depends on was delivered.",
    )
