"""Senders that wait for each number, that wait when they change groups, and that never wait."""

from __future__ import annotations

from experiments.claims import Claim, markdown_table
from experiments.drawing import Bars, Figure
from experiments.rows import Row, distinct, middle, only

TITLE = "Blocking and non-blocking senders"
ABOUT = """\
Eight members and four groups on a ring, every member in one of them, or in two: then who sends,
sends to its two groups in turn. That is the worst case for causal orders, since what goes to one
group comes after what went to the other. Three ways. *Blocking*: a message leaves when the one
before it has its number (the source's first form, here a variant). *By default* nobody blocks,
and a message waits at its sender only for own messages to other groups, so that no crash leaves a
gap. With `resilience=0` no crash is provided for: a message leaves at once if the same sequencer
numbers both groups. Once everybody has all its messages to send at the start, on networks of
different delay; once they come in bursts, on a network that takes 1 ms."""

WAYS = {"{}": "by default", '{"resilience":0}': "resilience 0", '{"blocking":true}': "blocking"}


def figure(rows: list[Row]) -> Figure:
    own = only(rows, protocol="sequencing_hybrid")
    counts = distinct(own, "sequencers")
    first = only(own, sequencers=counts[0])
    panels = [_throughput(f"each in one group, {_sequencers(counts[0])}", only(first, overlap=1))]
    panels += [
        _throughput(f"each in two groups, {_sequencers(k)}", only(own, overlap=2, sequencers=k))
        for k in counts
    ]
    panels.append(
        Bars(f"Delay, each in two groups, {_sequencers(counts[0])}",
             "ms from send to delivery, mean; by how many messages are in a burst",
             *_by_way(bursts(first), "burst", "delay_mean_ms", "{:g} at once"))
    )  # fmt: skip
    return Figure(TITLE, panels, ["All panels: `sequencing_hybrid`."])


def _throughput(said: str, own: list[Row]) -> Bars:
    unit = "messages per second; by the delay of a packet"
    bars = _by_way(fast(own), "link", "throughput_per_s", "{:g} ms")
    return Bars(f"Throughput, {said}", unit, *bars)


def _sequencers(count: int) -> str:
    return "1 sequencer" if count == 1 else f"{count} sequencers"


def claims(rows: list[Row]) -> list[Claim]:
    return [_concurrency(rows), _send_rule(rows)]


def fast(rows: list[Row]) -> list[Row]:
    """The runs in which all is sent at the start, with the delay of a packet in ms."""
    own = only(rows, workload="saturating")
    return [row | {"link": float(row["delay"].split()[1]) / 1000} for row in own]


def bursts(rows: list[Row]) -> list[Row]:
    """The others."""
    return only(rows, workload="paced")


def _by_way(
    own: list[Row], x: str, column: str, named: str
) -> tuple[list[str], dict[str, list[float | None]]]:
    """A name for each x, and for each way a value there."""
    xs = distinct(own, x)
    series: dict[str, list[float | None]] = {
        said: [middle(own, column, options=way, **{x: at}) for at in xs]
        for way, said in WAYS.items()
    }
    return [named.format(at) for at in xs], series


def _concurrency(rows: list[Row]) -> Claim:
    table: list[list[object]] = []
    gains: list[float] = []
    for protocol, groups, count, link in _cases(fast(rows)):
        own = only(fast(rows), protocol=protocol, overlap=groups, sequencers=count, link=link)
        rates = [middle(own, "throughput_per_s", options=way) for way in WAYS]
        by_default, bare, blocking = rates
        gains += [by_default / blocking, bare / blocking]
        table.append([f"`{protocol}`", int(groups), count, link, *rates, *gains[-2:]])
    head = [
        "", "groups of a member", "sequencers", "delay of a packet, ms",
        *(f"{said}: messages per s" for said in WAYS.values()),
        "default against blocking", "resilience 0 against blocking",
    ]  # fmt: skip
    return Claim(
        claim="To restrict processes from multicasting while a previous multicast has not been "
        "ACCEPT-ed reduces their capacity to execute concurrently; without that, any process may "
        "send to any group without blocking.",
        where='000, section 5, "Increasing concurrency"',
        measured="All sent at the start, in turn to each group:\n\n" + markdown_table(head, table),
        holds="yes" if min(gains) > 1.5 else "in part" if max(gains) > 1.5 else "no",
        why="Who sends to one group, or has one sequencer and asks for no protection from crashes, "
        "gains as much as the network is slow. But a message that comes after one to another group "
        "needs its number. The source lets it name the other by its identifier, SEQ(id), and "
        "members wait for the number. That deadlocks ([SOURCES.md](SOURCES.md), E-K9 to E-K11), so "
        "here the message waits, at its sender or at the sequencer. The application does not "
        "block, but a sender that changes groups with every message is no faster than one that "
        "blocks.",
    )


def _cases(own: list[Row]) -> list[tuple[str, float, int, float]]:
    return sorted({(r["protocol"], r["overlap"], r["sequencers"], r["link"]) for r in own})


def _send_rule(rows: list[Row]) -> Claim:
    table: list[list[object]] = []
    for protocol in distinct(rows, "protocol"):
        for count in distinct(rows, "sequencers"):
            for burst in distinct(bursts(rows), "burst"):
                own = only(bursts(rows), protocol=protocol, sequencers=count, burst=burst)
                delays = [middle(own, "delay_mean_ms", options=way) for way in WAYS]
                table.append([f"`{protocol}`", count, burst, *delays, delays[0] / delays[1]])
    head = ["", "sequencers", "burst", *(f"{said}: delay, ms" for said in WAYS.values()),
            "default against resilience 0"]  # fmt: skip
    return Claim(
        claim="Nothing is said of a sequencer that numbers two messages of a sender in a row and "
        "dies before the first has reached anybody. What our rule against it costs.",
        where="000 leaves crashes out; departures D3 and D7 in the head of "
        "`protocols/sequencing/orders.py`",
        measured="Mean delay from send to delivery, messages in turn to two groups:\n\n"
        + markdown_table(head, table),
        holds="nothing was claimed",
        why="By default a message that comes after one to another group waits a round trip. With "
        "`resilience=0` it does so only where another sequencer numbers that group.",
    )
