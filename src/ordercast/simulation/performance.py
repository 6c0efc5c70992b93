"""How fast a run was, in simulated time. It means something where work takes time: see `costs`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.simulation.agenda import TICK_US
from ordercast.simulation.log import Declared, Sent, TraceLog, Weighed
from ordercast.simulation.payload import unpack
from ordercast.simulation.processors import Processors


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """From the first message sent until the last one delivered."""

    span_ms: float  # how long that was
    throughput: float  # messages per second that the slowest member got, added up over groups
    delay_mean_ms: float  # from the send to a delivery; at the sender itself too
    delay_p50_ms: float
    delay_p95_ms: float
    delay_p99_ms: float
    delay_all_ms: float  # from the send to the last delivery of a message, the median over them
    busy: tuple[float, ...] = ()  # share of the time each process worked; empty without costs
    longest_line: int = 0  # the most events that waited for one processor


def performance_of(
    log: TraceLog, groups: Iterable[Declared], processors: Processors | None
) -> Performance:
    """The figures of a run, from its trace."""
    sent: dict[tuple[GroupId, ProcessId, int], int] = {}
    delivered: dict[GroupId, Counter[ProcessId]] = {}
    delays: list[int] = []
    last_of: dict[tuple[GroupId, ProcessId, int], int] = {}  # when a message was last delivered
    last = 0
    for p, tick, row in log.rows():
        if isinstance(row, Sent):
            sent[row.group, p, row.number] = tick
            continue
        delivery = row.delivery if isinstance(row, Weighed) else row
        if type(delivery) is tuple:
            group, sender, _, _, payload = delivery
            message = (group, sender, unpack(payload)[0])
            delays.append(tick - sent[message])
            last_of[message] = tick
            delivered.setdefault(group, Counter())[p] += 1
            last = tick
    first = min(sent.values(), default=0)
    span = (last - first) * TICK_US
    got = sum(_slowest(delivered.get(each.group, Counter()), each.members) for each in groups)
    delays.sort()
    to_all = sorted(tick - sent[message] for message, tick in last_of.items())
    return Performance(
        span_ms=span / 1000,
        throughput=got / span * 1e6 if span > 0 else 0.0,
        delay_mean_ms=sum(delays) * TICK_US / max(len(delays), 1) / 1000,
        delay_p50_ms=percentile(delays, 0.50) * TICK_US / 1000,
        delay_p95_ms=percentile(delays, 0.95) * TICK_US / 1000,
        delay_p99_ms=percentile(delays, 0.99) * TICK_US / 1000,
        delay_all_ms=percentile(to_all, 0.50) * TICK_US / 1000,
        busy=() if processors is None else processors.shares(first * TICK_US, last * TICK_US),
        longest_line=0 if processors is None else processors.longest_line,
    )


def _slowest(delivered: Counter[ProcessId], members: tuple[ProcessId, ...]) -> int:
    """How many messages the member with the fewest got; without a list, of those who got any."""
    return min((delivered[p] for p in members or delivered), default=0)


def percentile(ascending: list[int], share: float) -> int:
    """The value that this share of them does not exceed; 0 if there are none."""
    return ascending[int(share * (len(ascending) - 1))] if ascending else 0
