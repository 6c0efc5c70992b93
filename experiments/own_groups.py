"""004: of which groups a header must tell, where groups make a cycle and where they do not."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Bars, Figure
from experiments.rows import Row, breaks, distinct, middle, only

TITLE = "Which groups a header must tell of"
ABOUT = """\
Four groups of four; each has two members in common with the next. On a ring, as in figure 3 of the
source, the last has two in common with the first; along a line it has none. Members answer what
they get, in any of their groups, so what happened in one group causes messages in others. Once
headers carry all that their sender knows; once only what concerns the groups that the sender is in,
and what it has heard of the groups of others is not passed on. The latter are variants for this
experiment, which promise no causal order across groups; a run counts as kept if all other promises
hold. Whether the order held nevertheless is judged as well."""

ORDER = "causal.global"
SHAPES = (("line", False), ("ring", True))
WAYS = (("all groups told", True), ("own groups only", False))


def figure(rows: list[Row]) -> Figure:
    names = distinct(rows, "protocol")
    return Figure(
        TITLE,
        [
            Bars(title, unit, names, {
                f"{shape}, {way}": [value(_runs(rows, name, ring, told)) for name in names]
                for shape, ring in SHAPES
                for way, told in WAYS
            })
            for title, unit, value in (
                ("Causal order across groups broken", "% of the runs", _broken_share),
                ("Header", "bytes of a packet with a message, median of the means", _header),
            )
        ],
        shows="shares of them, and of headers medians over them",
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_no_cycle(rows), _cycle(rows)]


def _runs(rows: list[Row], protocol: str, ring: bool, hearsay: bool) -> list[Row]:
    return only(rows, protocol=protocol, ring=ring, hearsay=hearsay)


def _broken(rows: list[Row]) -> int:
    return sum(breaks(row, ORDER) for row in rows)


def _broken_share(rows: list[Row]) -> float:
    return 100 * _broken(rows) / len(rows)


def _header(rows: list[Row]) -> float:
    return middle(rows, "header_mean_bytes")


def _table(rows: list[Row], ring: bool) -> str:
    table: list[list[object]] = []
    for name in distinct(rows, "protocol"):
        every, own = _runs(rows, name, ring, True), _runs(rows, name, ring, False)
        shares = [_broken(every), _broken(own)]
        table.append([f"`{name}`", len(own), *shares, _header(every), _header(own)])
    head = [
        "", "runs of each", "broken, all groups told", "broken, own groups only",
        "header bytes, all", "header bytes, own",
    ]  # fmt: skip
    return markdown_table(head, table)


def _no_cycle(rows: list[Row]) -> Claim:
    broken = _broken(only(rows, ring=False))
    return Claim(
        claim="Where overlapping groups make no cycle it suffices for a message to carry causal "
        "information about all groups that its sender is a member of.",
        where="004, section 5.2",
        measured=f"Groups along a line:\n\n{_table(rows, ring=False)}",
        holds="no" if broken else "yes",
        why=""
        if broken
        else "It saves little here: of groups that the sender is not in there is "
        "little news in a header that carries only news.",
    )


def _cycle(rows: list[Row]) -> Claim:
    ring = only(rows, ring=True)
    by_name = [_broken(only(ring, protocol=n, hearsay=False)) for n in distinct(ring, "protocol")]
    kept = not _broken(only(ring, hearsay=True))
    holds: Holds = "no" if not any(by_name) else "yes" if all(by_name) and kept else "in part"
    return Claim(
        claim="In the general case causal dependences may propagate through cycles, and messages "
        "have to carry causal information of all groups.",
        where="004, section 5.2 and figure 3",
        measured=f"The same groups on a ring:\n\n{_table(rows, ring=True)}",
        holds=holds,
        why=""
        if holds == "yes"
        else "Not every protocol broke the order without it: a dependence must go all the way "
        "round while a message is still under way.",
    )
