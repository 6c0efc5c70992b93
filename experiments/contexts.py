"""How long contexts are, and what hybrid and total order cost, against the overlap of groups."""

from __future__ import annotations

from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only
from ordercast.simulation.config import overlapping_groups

TITLE = "Contexts, and hybrid against total order"
ABOUT = """\
Twelve groups on a ring of 24 members; each member is in one group, in two, in four or in eight.
Two further processes are the sequencers. A message of 100 bytes every quarter of a millisecond,
packets take 0.5 to 1.5 ms. A context is what stands in the header of a numbered message beside its
own number: other groups, each with a number. A number that all members of its group have delivered
is not named any more, so contexts depend on how much is said: that is the second panel."""

TOTAL, HYBRID, BOTH = "sequencing", "sequencing_hybrid", "sequencing_causal"
NAMES = {TOTAL: "total", HYBRID: "hybrid", BOTH: "causal and total"}
ORDERS = (TOTAL, HYBRID, BOTH)
OVERLAP = "groups that a member is in"


def figure(rows: list[Row]) -> Figure:
    own = by_overlap(rows)

    def lines(value: str) -> list[Line]:
        return [Line(NAMES[n], against(only(own, protocol=n), "overlap", value)) for n in ORDERS]

    said = by_pace(rows)
    paces = [
        Line(NAMES[n], against(only(said, protocol=n), "pace", "context_mean")) for n in ORDERS
    ]
    return Figure(
        TITLE,
        (
            Lines("Length of contexts", OVERLAP, "other groups that are named, mean",
                  lines("context_mean")),
            Lines(f"The same, each member in {said[0]['overlap']:g} groups",
                  "messages per second, all together", "other groups that are named, mean", paces),
            Lines("Header of a message", OVERLAP, "bytes, mean", lines("header_mean_bytes")),
            Lines("Delay", OVERLAP, "ms from send to delivery, median", lines("delay_p50_ms")),
            Lines("Held back", OVERLAP, "ms from arrival to delivery, mean",
                  lines("hold_back_mean_ms")),
            Lines("Processor time", OVERLAP, "µs per message, all processes together",
                  lines("cpu_us_per_message")),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_short(rows), _unneeded(rows), _hybrid(rows)]


def by_overlap(rows: list[Row]) -> list[Row]:
    """The runs at one pace, the one that there is at every overlap."""
    alone = min(distinct(rows, "overlap"))
    return only(rows, every_us=only(rows, overlap=alone)[0]["every_us"])


def by_pace(rows: list[Row]) -> list[Row]:
    """The runs at one overlap, with how many messages a second there were."""
    others = [row for row in rows if row["every_us"] != by_overlap(rows)[0]["every_us"]]
    own = only(rows, overlap=others[0]["overlap"], protocol=ORDERS)
    return [row | {"pace": 1e6 / row["every_us"]} for row in own]


def meeting(row: Row) -> float:
    """With how many other groups a group shares a member, on average."""
    groups = overlapping_groups(row["members"], row["groups"], row["group_size"])
    members = [set(group.members) for group in groups]
    met = sum(bool(one & other) for one in members for other in members)
    return met / len(groups) - 1


def _short(rows: list[Row]) -> Claim:
    own = by_overlap(rows)
    overlaps = distinct(own, "overlap")
    said = by_pace(rows)
    paces: list[list[object]] = [
        [pace, *(middle(said, "context_mean", pace=pace, protocol=n) for n in ORDERS)]
        for pace in distinct(said, "pace")
    ]
    total = [middle(own, "context_mean", overlap=overlap, protocol=TOTAL) for overlap in overlaps]
    within = [_beyond(own, overlap, TOTAL) <= 0 for overlap in overlaps]
    orders = [NAMES[name] for name in ORDERS]
    return Claim(
        claim="Contexts are reasonably short in the majority of cases, that is, unless a group "
        "overlaps with many other groups. (Said of the total order.)",
        where="000, section 4.1",
        measured=f"Of {own[0]['groups']} groups:\n\n{_lengths(own)}\n\n"
        f"At overlap {said[0]['overlap']:g}, against how much is said:\n\n"
        + markdown_table(["messages per s", *(f"context, {order}" for order in orders)], paces)
        + "\n\n(Short: no more groups than a group meets, and fewer where it meets fewer.)",
        holds="yes" if all(within) and total == sorted(total) else "in part",
        why="A total order names at most the groups that this one meets. In our form, what all "
        "have delivered is named no more, so a context is shorter still where little is said. Of "
        "the causal orders it is not true: see the next claim.",
    )


def _lengths(own: list[Row]) -> str:
    table: list[list[object]] = [
        [
            overlap,
            middle(own, meeting, overlap=overlap, protocol=TOTAL),
            *(middle(own, "context_mean", overlap=overlap, protocol=name) for name in ORDERS),
        ]
        for overlap in distinct(own, "overlap")
    ]
    head = [OVERLAP, "other groups that a group meets", *(f"context, {NAMES[n]}" for n in ORDERS)]
    return markdown_table(head, table)


def _beyond(own: list[Row], overlap: float, protocol: str) -> float:
    """How many more groups a context names than a group meets, on average."""
    named = middle(own, "context_mean", overlap=overlap, protocol=protocol)
    return named - middle(own, meeting, overlap=overlap, protocol=TOTAL)


def _unneeded(rows: list[Row]) -> Claim:
    own = by_overlap(rows)
    overlaps = distinct(own, "overlap")
    most = {n: max(_beyond(own, overlap, n) for overlap in overlaps) for n in ORDERS}
    causal = [most[n] > 0 for n in (HYBRID, BOTH)]
    return Claim(
        claim="There is scope for improving the unmanaged way in which context information is "
        "forwarded even when it is not all needed, in case of overlap between groups.",
        where="000, section 7, second paragraph",
        measured="A group needs at most numbers of the groups that it meets. The table above: at "
        "some overlap contexts name "
        + ", ".join(f"{most[n]:.2f} groups more ({NAMES[n]})" for n in ORDERS if most[n] > 0)
        + " than that, on average."
        if any(causal)
        else "No context of these runs names more groups than its group meets, on average.",
        holds="yes" if all(causal) else "in part" if any(causal) else "no",
        why="A causal order names whatever its sender has seen, also of groups that this one never "
        "meets: a third group may meet both. What all have delivered is named no more here, which "
        "the source does not have.",
    )


def _hybrid(rows: list[Row]) -> Claim:
    own = by_overlap(rows)
    columns = ("delay_p50_ms", "hold_back_mean_ms", "packets_per_message", "cpu_us_per_message")
    table: list[list[object]] = [
        [
            overlap,
            *(
                figure
                for column in columns
                for figure in (
                    middle(own, column, overlap=overlap, protocol=TOTAL),
                    middle(own, column, overlap=overlap, protocol=HYBRID),
                )
            ),
        ]
        for overlap in distinct(own, "overlap")
    ]
    slower = [float(str(row[2])) / float(str(row[1])) for row in table]
    said = ("delay, ms", "held back, ms", "packets", "processor, µs")
    head = [OVERLAP, *(f"{what}: {order}" for what in said for order in ("total", "hybrid"))]
    return Claim(
        claim="Total ordering is too strong in some applications that contain overlapping groups; "
        "the hybrid order guarantees causal order across them, and total order in each (no price "
        "is given for either).",
        where="000, section 3.1",
        measured="Per message, medians over seeds:\n\n"
        + markdown_table(head, table)
        + f"\n\nThe hybrid order takes {min(slower):.2f} to {max(slower):.2f} times the delay of "
        "the total order.",
        holds="nothing was claimed",
        why="A weaker order is not a faster one here. It holds messages back for less time, but a "
        "sender that changes groups waits until it has its last message back, and contexts are "
        "work.",
    )
