"""What was measured in one run, as plain data: for reports, comparisons and JSON.

A figure that the trace does not tell is None, never 0. Packets, repeats and waiting times are told
by traces that were recorded at protocol level only; times by rows that have a `time`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal

MOST_NAMED = 50  # processes or pairs that a list names; the counts beside it are complete

Sureness = Literal["proven", "possible", "one-way", "unsteady"]


@dataclass(frozen=True)
class Spread:
    """How a quantity is spread over many things: nanoseconds or bytes, as the field says."""

    count: int  # of things that it is known for
    mean: float
    percentiles: tuple[tuple[int, int], ...]  # (percent, value), ascending, from 0 to 100

    def at(self, percent: int) -> int:
        """The value that this share of things does not exceed; of the percents that are kept."""
        return dict(self.percentiles)[percent]


@dataclass(frozen=True)
class GroupFigures:
    """One group of a run."""

    group: str
    protocol: str | None
    sends: int
    deliveries: int  # first deliveries: a message counts once per process
    repeats: int  # deliveries of what this process had delivered before
    latency: Spread | None = None  # nanoseconds from send to delivery
    hold_back: Spread | None = None  # nanoseconds from arrival at a process to delivery there
    waited: int | None = None  # deliveries whose hold-back time is above 0
    headers: Spread | None = None  # header bytes per delivery, of the packet that brought it
    payload: Spread | None = None  # body bytes per message sent
    packet_headers: Spread | None = None  # header bytes per packet received, of whatever kind
    # Rows of the kinds for statistics; None where the run has no row of any such kind.
    packets_received: int | None = None  # a packet with n messages counts once
    retransmissions: int | None = None
    nacks: int | None = None
    nulls: int | None = None
    forwards: int | None = None
    drops: int | None = None
    acks: int | None = None


@dataclass(frozen=True)
class Bucket:
    """What happened in one slice of the run's time."""

    start_ns: int  # since the first send or delivery of the run
    sends: int
    deliveries: int


@dataclass(frozen=True)
class Throughput:
    """Over the time from the first to the last send or delivery that has a time."""

    duration_ns: int
    sends_per_s: float | None  # None where all happened at one instant
    deliveries_per_s: float | None  # over all processes together
    bucket_ns: int  # length of each slice
    buckets: tuple[Bucket, ...]  # without holes, ascending


@dataclass(frozen=True)
class LossyLog:
    """A log with `lost` rows."""

    process: str
    places: int  # rows of kind `lost`
    records: int | None  # how many records are missing; None where a row does not tell


@dataclass(frozen=True)
class ClockSkew:
    """How far the clocks of two processes are apart, from the messages between them.

    A message takes no less than no time. So the smallest latency in either direction bounds the
    offset: `second - first` lies between -back_ns and forth_ns, if it did not change meanwhile.
    """

    first: str
    second: str
    forth_ns: int | None  # smallest latency from first to second; None: no such delivery
    back_ns: int | None
    early: int  # deliveries between the two that are earlier than their sends

    @property
    def offset_ns(self) -> int | None:
        """The middle of the bounds: how much the clock of `second` is ahead, at a guess."""
        if self.forth_ns is None or self.back_ns is None:
            return None
        return (self.forth_ns - self.back_ns) // 2

    @property
    def uncertainty_ns(self) -> int | None:
        """Half the distance of the bounds: the offset is right give or take this much."""
        if self.forth_ns is None or self.back_ns is None:
            return None
        return abs(self.forth_ns + self.back_ns) // 2

    @property
    def sureness(self) -> Sureness:
        """proven: the clocks do differ. possible: they may, equal clocks explain all as well.

        one-way: messages in one direction only, so there is one bound and no estimate.
        unsteady: no fixed offset explains the times, so a clock was set or runs at another speed.
        """
        if self.forth_ns is not None and self.back_ns is not None:
            if self.forth_ns + self.back_ns < 0:
                return "unsteady"
            return "proven" if min(self.forth_ns, self.back_ns) < 0 else "possible"
        return "proven" if self.early else "one-way"


@dataclass(frozen=True)
class TraceHealth:
    """How far the trace can be trusted. Lists name the first `MOST_NAMED`, worst first."""

    cut: tuple[str, ...] = ()  # logs that simply stop: no crash, no end
    lossy: tuple[LossyLog, ...] = ()
    silent: tuple[str, ...] = ()  # declared or in a view, without a row of their own
    untimed: tuple[str, ...] = ()  # with sends or deliveries that have no time
    no_send: int = 0  # deliveries of messages that nobody is recorded to have sent
    early: int = 0  # deliveries that are earlier than their sends, by the clocks
    skews: tuple[ClockSkew, ...] = ()  # pairs of processes, largest proven offset first
    skewed_pairs: int = 0  # pairs whose clocks differ for sure, or are unsteady
    pairs: int = 0  # pairs with a delivery between them


@dataclass(frozen=True)
class Figures:
    """One run."""

    groups: tuple[GroupFigures, ...] = ()  # by name; one that has only packets is the links' own
    throughput: Throughput | None = None  # None where no send and no delivery has a time
    health: TraceHealth = field(default_factory=TraceHealth)
    whole: GroupFigures | None = None  # all groups together; the group is ""

    def as_json(self) -> dict[str, object]:
        """The shape in `--json`."""
        told = asdict(self)
        for skew, one in zip(told["health"]["skews"], self.health.skews, strict=True):
            skew["offset_ns"] = one.offset_ns
            skew["uncertainty_ns"] = one.uncertainty_ns
            skew["sureness"] = one.sureness
        return told
