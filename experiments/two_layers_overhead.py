"""002: the overhead of two layers in headers, packets and work, against the formulas."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt, log

from experiments.claims import Claim, markdown_table
from experiments.crossover import FLAT, LAYERED, NAMES, Panel, against_size
from experiments.drawing import Figure
from experiments.rows import Row, Value, distinct, middle, only
from ordercast.wire.frame import FIXED_SIZE

TITLE = "Two layers: headers, packets and work"
ABOUT = """\
One message at a time, each confirmed by all before the next, on a one-to-one network whose packets
take 0.5 to 1.5 ms. Sizes are squares, and the two-layered group is cut into as many subgroups as
each has members, with the gateway. Headers are counted as bytes on the wire. Where counters are
small, as here, an entry takes one byte."""

BESIDES = 16  # bytes of a header beyond its vectors, at most: numbers, a process, lengths
BODIES = ("Local", "Global", "Stamped")
PRICES: tuple[Panel, ...] = (
    ("Header of a message", "bytes, mean over receivers", "header_mean_bytes"),
    ("Header bytes of all packets", "bytes per message", "header_bytes_per_message"),
    ("Packets of all kinds", "per message", "packets_per_message"),
    ("Processor time", "µs per message, all members together", "cpu_us_per_message"),
)


def figure(rows: list[Row]) -> Figure:
    return Figure(TITLE, against_size(rows, PRICES))


def claims(rows: list[Row]) -> list[Claim]:
    return [_headers(rows), _packets(rows), _growth(rows)]


def entries_of(n: int) -> float:
    """Entries of the vectors in a header: l + k in a subgroup, k among gateways; the mean."""
    k = members = isqrt(n)
    return ((n - k) * (members + k) + (k - 1) * k) / (n - 1)


def _headers(rows: list[Row]) -> Claim:
    table: list[list[object]] = []
    besides = []
    for n in distinct(rows, "members"):
        flat = middle(rows, "header_mean_bytes", members=n, protocol=FLAT)
        two = middle(rows, "header_mean_bytes", members=n, protocol=LAYERED)
        besides += [flat - n - FIXED_SIZE, two - entries_of(n) - FIXED_SIZE]
        table.append([n, n, flat, entries_of(n), two])
    head = ["members", "entries, flat", "bytes", "entries, two layers", "bytes "]
    return Claim(
        claim="In the TG protocol the size of RSQ is k (< n) and the size of rsq is l (< n); the "
        "header of a traditional protocol is O(n).",
        where="002, sections 1 and 5",
        measured="Entries of vectors in the header of a message, by the formulas, and the bytes "
        f"that were measured:\n\n{markdown_table(head, table)}\n\n"
        f"Beyond its vectors, and {FIXED_SIZE} bytes that every frame has, a header has "
        f"{min(besides):.1f} to {max(besides):.1f} bytes.",
        holds="yes" if min(besides) >= 0 and max(besides) <= BESIDES else "no",
        why="In the source l leaves out the gateway, so rsq has l + 1 entries (erratum E-T1). Here "
        "l counts it.",
    )


def _bodies(row: Row) -> float:
    """Packets with the message, per message."""
    return sum(_of_kind(kind)(row) for kind in BODIES)


def _of_kind(kind: str) -> Callable[[Row], float]:
    return lambda row: float(row["packet_kinds"].get(kind, 0) / row["sent"])


def _packets(rows: list[Row]) -> Claim:
    table: list[list[object]] = []
    as_counted = []
    for n in distinct(rows, "members"):
        k = isqrt(n)
        own = only(rows, members=n, protocol=LAYERED)
        local, between = middle(own, _of_kind("Local")), middle(own, _of_kind("Global"))
        flat = middle(rows, _bodies, members=n, protocol=FLAT)
        words = [middle(rows, "packets_per_message", members=n, protocol=p) - n + 1 for p in NAMES]
        as_counted.append((round(local, 2), round(between, 2), flat) == (n - k, k - 1, n - 1))
        table.append([n, flat, local, between, *words])
    head = [
        "members", "flat: messages", "two layers: local", "global", "flat: further packets",
        "two layers: further packets",
    ]  # fmt: skip
    return Claim(
        claim="A process sends n messages in a flat group. A local process sends l local messages "
        "and a gateway process sends k global messages in a two-layered group.",
        where="002, section 5",
        measured=f"Packets per message:\n\n{markdown_table(head, table)}",
        holds="yes" if all(as_counted) else "no",
        why="Both take n - 1 packets for a message, as no process sends itself one and gateways "
        "are members. The further ones tell what all have. The source counts none, since each "
        "message confirms those before it; who has nothing to say must confirm alone.",
    )


def _growth(rows: list[Row]) -> Claim:
    least, most = _span(rows)
    table: list[list[object]] = [
        [said, *(_power(only(rows, protocol=name), column) for _, _, column in PRICES)]
        for name, said in NAMES.items()
    ]
    saved = {
        column: _largest(rows, LAYERED, column) / _largest(rows, FLAT, column)
        for column in ("header_bytes_per_message", "cpu_us_per_message")
    }
    less = [ratio < 1 for ratio in saved.values()]
    in_bytes, in_work = saved.values()
    return Claim(
        claim="O(n²) computation and communication overheads are implied by vectors of n entries; "
        "a group of subgroups reduces the overheads.",
        where="002, sections 1 and 2.1",
        measured=f"From n = {least} to {most} they grow with this power of n:\n\n"
        f"{markdown_table(['', *(title.lower() for title, _, _ in PRICES)], table)}\n\n"
        f"At n = {most} two layers take {in_bytes:.2f} times the header bytes of a flat group, and "
        f"{in_work:.2f} times its processor time.",
        holds="yes" if all(less) else "in part" if any(less) else "no",
        why="Per message there are n headers of n entries against n of about 2 sqrt(n). But a "
        "packet costs something whatever its header, and two layers have more of them and more to "
        "do for each: a gateway counts who has what for others. With the powers above, work is "
        "saved in larger groups only.",
    )


def _span(rows: list[Row]) -> tuple[int, int]:
    """The sizes between which growth is measured: in small groups the rest of a header counts."""
    sizes = distinct(rows, "members")
    return sizes[len(sizes) // 2 - 1], sizes[-1]


def _power(rows: list[Row], column: Value) -> float:
    """x of n^x."""
    least, most = _span(rows)
    rise = middle(rows, column, members=most) / middle(rows, column, members=least)
    return log(rise) / log(most / least)


def _largest(rows: list[Row], protocol: str, column: str) -> float:
    return middle(rows, column, members=_span(rows)[1], protocol=protocol)
