"""004: what it costs that silent members must speak: NULL packets, and the wait for them."""

from __future__ import annotations

import json

from experiments.causal_blocks import in_order
from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.header_saving import IN_ALL, against_cbcast, saved
from experiments.rows import Row, against, distinct, middle, only

TITLE = "Causal Blocks: the price of silence"
ABOUT = """\
Twelve members in six groups, each in two of them. A protocol that waits for complete blocks waits
for a word of every member, and a member with nothing to say sends a NULL after a time-out. First
the delay against this time-out (`silence_ms`) at two paces, on two networks: packets take 0.1 ms on
average, or 1 ms. Then, at the usual time-out of 20 ms, what NULLs take away of the header
bytes that are spared, against how much is said. `cbcast` waits for nobody's word and is there to
compare."""

USUAL_MS = 20
NETWORKS = (("0.1 ms", "exponential 30 100"), ("1 ms", "exponential 300 1000"))
BY_BLOCKS = ("slow", "relative")


def figure(rows: list[Row]) -> Figure:
    names = in_order(rows)
    panels = []
    for us in _paces(rows):
        lines = [
            Line(f"{name}, {said}", _by_time_out(only(rows, protocol=name, delay=d, every_us=us)))
            for name in names
            for said, d in NETWORKS
        ]
        title = f"Delay, {1e6 / us:,.0f} messages per second"
        panels.append(
            Lines(title, "time-out of a silent member, ms", "ms from send to delivery, mean", lines)
        )
    own, across = _usual(rows), "messages per second, all together"
    by_blocks = [name for name in names if name != "cbcast"]
    spared = [Line(n, _by_rate(against_cbcast(own, n, "every_us", IN_ALL))) for n in by_blocks]
    said = [Line(n, _by_rate(against(only(own, protocol=n), "every_us", nulls))) for n in by_blocks]
    panels += [
        Lines("Spared in all packets", across, "% of CBCAST's header bytes that are saved", spared),
        Lines("NULL packets", across, "per message", said),
    ]
    return Figure(TITLE, panels)


def claims(rows: list[Row]) -> list[Claim]:
    return [_live(rows), _delay(rows)]


def silence_ms(row: Row) -> int:
    """The time-out of this run."""
    return int(json.loads(row["options"])["silence_ms"])


def nulls(row: Row) -> float:
    """NULL packets per message."""
    return float(row["packet_kinds"].get("Null", 0) / row["sent"])


def _usual(rows: list[Row]) -> list[Row]:
    """The runs with the usual time-out, on the slower network."""
    return [row for row in only(rows, delay=NETWORKS[1][1]) if silence_ms(row) == USUAL_MS]


def _paces(rows: list[Row]) -> list[float]:
    """Those at which every network was run, the busiest first."""
    return distinct(only(rows, delay=NETWORKS[0][1]), "every_us")


def _by_time_out(rows: list[Row]) -> list[tuple[float, float, float, float]]:
    told = [{**row, "silence_ms": silence_ms(row)} for row in rows]
    return against(told, "silence_ms", "delay_mean_ms")


def _by_rate(
    points: list[tuple[float, float, float, float]],
) -> list[tuple[float, float, float, float]]:
    return sorted((1e6 / us, y, least, most) for us, y, least, most in points)


def _live(rows: list[Row]) -> Claim:
    own = _usual(rows)
    names = [name for name in in_order(own) if name != "cbcast"]
    table: list[list[object]] = [
        [
            1e6 / us,
            *(saved(own, name, "every_us", us, IN_ALL) for name in names),
            *(middle(own, nulls, protocol=name, every_us=us) for name in names),
        ]
        for us in distinct(own, "every_us")
    ]
    head = [
        "messages per s",
        *(f"`{name}` saves, %" for name in names),
        *(f"NULLs of `{name}`" for name in names),
    ]
    live = all(row["verdict"] == "kept" for row in only(rows, protocol=names))
    return Claim(
        claim="All members of a group are lively: each will eventually multicast again. A simple "
        "mechanism with time-outs can take the place of this assumption (its cost is not told).",
        where="004, section 3",
        measured="Every run came to rest with all messages delivered. Header bytes of all packets "
        f"that are saved against CBCAST, and NULL packets per message:\n\n"
        f"{markdown_table(head, table)}",
        holds="yes" if live else "no",
        why="Its packets count, too: the longer members are silent, the more of them stand against "
        "what the smaller timestamps spare.",
    )


def _delay(rows: list[Row]) -> Claim:
    names = in_order(rows)
    table: list[list[object]] = []
    for us in _paces(rows):
        for said, delay in NETWORKS:
            own = only(rows, every_us=us, delay=delay)
            for ms in sorted({silence_ms(row) for row in own}):
                at = [row for row in own if silence_ms(row) == ms]
                delays = [middle(at, "delay_mean_ms", protocol=name) for name in names]
                table.append([1e6 / us, said, ms, *delays])
    head = ["messages per s", "packets take", "time-out, ms", *(f"`{name}`, ms" for name in names)]
    return Claim(
        claim="Slow and Relative may introduce extra delays, since Causal Blocks have to be "
        "complete (what the delay follows is not told).",
        where="004, sections 5 and 6",
        measured=f"Mean delay from send to delivery:\n\n{markdown_table(head, table)}\n\n"
        + " ".join(_followed(rows, us) for us in _paces(rows)),
        holds="nothing was claimed",
    )


def _followed(rows: list[Row], us: float) -> str:
    """What makes the delay longer, the time-out or the network, at this pace."""
    own = only(rows, every_us=us)
    shortest, longest = min(map(silence_ms, own)), max(map(silence_ms, own))
    parts = []
    for name in (*BY_BLOCKS, "cbcast"):
        by_network = {
            delay: dict(_medians(only(own, protocol=name, delay=delay))) for _, delay in NETWORKS
        }
        fast, slow = by_network.values()
        parts.append(
            f"of `{name}` by {slow[longest] / slow[shortest]:.1f} and "
            f"{slow[USUAL_MS] / fast[USUAL_MS]:.1f}"
        )
    return (
        f"With {1e6 / us:,.0f} messages per second a time-out {longest / shortest:g} times as long "
        f"(packets take 1 ms) and packets 10 times as slow (time-out {USUAL_MS} ms) multiply the "
        f"delay: {', '.join(parts)}."
    )


def _medians(rows: list[Row]) -> list[tuple[float, float]]:
    return [(ms, y) for ms, y, _, _ in _by_time_out(rows)]
