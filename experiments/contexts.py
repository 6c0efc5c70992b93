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
is not named any more, so contexts depend on how much is said: that is the second panel. `cbcast`
is run on the same messages for its vectors, which have an entry for each member."""

TOTAL, HYBRID, BOTH, VECTORS = "sequencing", "sequencing_hybrid", "sequencing_causal", "cbcast"
NAMES = {TOTAL: "total", HYBRID: "hybrid", BOTH: "causal and total", VECTORS: "cbcast"}
ORDERS = (TOTAL, HYBRID, BOTH)
OVERLAP = "groups that a member is in"


def figure(rows: list[Row]) -> Figure:
    own = by_overlap(rows)

    def lines(value: str, names: tuple[str, ...] = ORDERS) -> list[Line]:
        return [Line(NAMES[n], against(only(own, protocol=n), "overlap", value)) for n in names]

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
            Lines("Header of a message", OVERLAP, "bytes, mean",
                  lines("header_mean_bytes", (*ORDERS, VECTORS))),
            Lines("Delay", OVERLAP, "ms from send to delivery, median", lines("delay_p50_ms")),
            Lines("Held back", OVERLAP, "ms from arrival to delivery, mean",
                  lines("hold_back_mean_ms")),
            Lines("Processor time", OVERLAP, "µs per message, all processes together",
                  lines("cpu_us_per_message")),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_short(rows), _entries(rows), _hybrid(rows)]


def by_overlap(rows: list[Row]) -> list[Row]:
    """The runs at one pace."""
    pace = only(rows, protocol=VECTORS)[0]["every_us"]
    return only(rows, every_us=pace)


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
    table: list[list[object]] = [
        [
            overlap,
            middle(own, meeting, overlap=overlap, protocol=TOTAL),
            *(middle(own, "context_mean", overlap=overlap, protocol=name) for name in ORDERS),
        ]
        for overlap in overlaps
    ]
    said = by_pace(rows)
    paces: list[list[object]] = [
        [pace, *(middle(said, "context_mean", pace=pace, protocol=n) for n in ORDERS)]
        for pace in distinct(said, "pace")
    ]
    total = [middle(own, "context_mean", overlap=overlap, protocol=TOTAL) for overlap in overlaps]
    within = all(
        middle(own, "context_mean", overlap=o, protocol=TOTAL)
        <= middle(own, meeting, overlap=o, protocol=TOTAL)
        for o in overlaps
    )
    orders = list(NAMES.values())[:3]
    head = [OVERLAP, "other groups that a group meets", *(f"context, {order}" for order in orders)]
    return Claim(
        claim="Contexts are reasonably short in the majority of cases, that is, unless a group "
        "overlaps with many other groups.",
        where="000, section 4.1; the last sentence but one of section 7 says that causal contexts "
        "are forwarded even when they are not needed",
        measured=f"Of {own[0]['groups']} groups:\n\n{markdown_table(head, table)}\n\n"
        f"At overlap {said[0]['overlap']:g}, against how much is said:\n\n"
        + markdown_table(["messages per s", *(f"context, {order}" for order in orders)], paces),
        holds="yes" if within and total == sorted(total) else "in part",
        why="A total order names at most the groups that this one meets. In our form, what all "
        "have delivered is named no more, so a context is shorter still where little is said. A "
        "causal order names whatever its sender has seen, also of groups that this one never "
        "meets.",
    )


def _entries(rows: list[Row]) -> Claim:
    own = by_overlap(rows)
    names = (*ORDERS, VECTORS)
    overlaps = distinct(own, "overlap")
    table: list[list[object]] = [
        [o, *(middle(own, "header_mean_bytes", overlap=o, protocol=name) for name in names)]
        for o in overlaps
    ]
    shorter = [
        middle(own, "header_mean_bytes", overlap=o, protocol=HYBRID)
        < middle(own, "header_mean_bytes", overlap=o, protocol=VECTORS)
        for o in overlaps
    ]
    return Claim(
        claim="The size of the context information is bounded by the number of groups, not by the "
        "number of processes: in general this is much less expensive in bandwidth than vector "
        "timestamps.",
        where="000, section 6 (against ISIS, and Florin and Toinard)",
        measured="Bytes of the header that came with a message, mean:\n\n"
        + markdown_table([OVERLAP, *(NAMES[n] for n in names)], table),
        holds="yes" if all(shorter) else "in part" if any(shorter) else "no",
        why="A header also has the message's own number, its origin and what is stable. `cbcast` "
        "sends only those entries of its vectors that changed since its sender spoke last, so it "
        "is a better rival than the one that the source had in mind. It pays to count groups where "
        "they are fewer than the members that one hears from.",
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
    said = ("delay, ms", "held back, ms", "packets", "processor, µs")
    head = [OVERLAP, *(f"{what}: {order}" for what in said for order in ("total", "hybrid"))]
    return Claim(
        claim="Total ordering is too strong in some applications that contain overlapping groups; "
        "the hybrid order guarantees causal order across them, and total order in each (no price "
        "is given for either).",
        where="000, section 3.1",
        measured="Per message, medians over seeds:\n\n" + markdown_table(head, table),
        holds="nothing was claimed",
    )
