"""Do the heartbeats of these nodes fit together, and is the network fast enough for them?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import msgspec

from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.report import Report
from ordercast.runtime.diagnosis.subject import Subject

CHECK = "heartbeats fit"
SPARE = 2  # a delay may take this part (1/SPARE) of the time by which a heartbeat may be late


class Clock(msgspec.Struct, frozen=True):
    """The heartbeats of one node."""

    who: str
    heartbeat_ms: int
    suspect_ms: int

    @property
    def left_ms(self) -> int:
        """A heartbeat may be late by this much before its node is suspected."""
        return self.suspect_ms - self.heartbeat_ms

    def __str__(self) -> str:
        return f"{self.who} has heartbeat_ms={self.heartbeat_ms}, suspect_ms={self.suspect_ms}"


def clock_of(report: Report) -> Clock:
    """A node's, by its own word."""
    return Clock(report.identity, report.heartbeat_ms, report.suspect_ms)


def check_clocks(reports: Iterable[Report], subject: Subject, diagnosis: Diagnosis) -> None:
    """Compare the nodes with each other, and with the node that wants in."""
    clocks = [clock_of(report) for report in reports if report.heartbeat_ms and report.suspect_ms]
    if {"heartbeat_ms", "suspect_ms"} & set(subject.options):
        own = subject.node_options()
        clocks.append(Clock(subject.name or "your node", own.heartbeat_ms, own.suspect_ms))
    if not clocks:
        return
    for one, other in permutations(clocks, 2):
        if other.suspect_ms < 2 * one.heartbeat_ms:
            seen = f"{one}; {other}: {other.who} will suspect {one.who} although it is alive"
            diagnosis.find("heartbeats_clash", one.who, seen)
            return
    odd = next((one for one in clocks if _times(one) != _times(clocks[0])), None)
    if odd is not None:
        diagnosis.find("heartbeats_differ", odd.who, f"{clocks[0]}; {odd}")
    else:
        beats, patience = _times(clocks[0])
        seen = f"heartbeat_ms={beats}, suspect_ms={patience} at all nodes ({len(clocks)})"
        diagnosis.passes(CHECK, "all", seen)


def _times(clock: Clock) -> tuple[int, int]:
    return clock.heartbeat_ms, clock.suspect_ms


def check_delays(
    report: Report, address: str, round_trips: list[float], diagnosis: Diagnosis
) -> None:
    """Are the ways and the node quick enough for its heartbeats?"""
    clock = clock_of(report)
    if clock.left_ms <= 0:
        return
    least, most = 1000 * min(round_trips), 1000 * max(round_trips)
    jitter = most - least
    measured = f"{len(round_trips)} round trips, {most:.1f} ms at most, jitter {jitter:.1f} ms"
    limit = f"a heartbeat may be late by {clock.left_ms} ms at most ({clock})"
    if most * SPARE > clock.left_ms:
        diagnosis.find("round_trip", address, f"{measured}; {limit}")
    else:
        diagnosis.passes("round trip", address, measured)
    stalls = report.stats.loop_stalls
    if stalls.longest_ms * SPARE > clock.left_ms:
        seen = (
            f"the event loop of {report.identity} stood still for {stalls.longest_ms:g} ms, "
            f"{stalls.seconds_ago:g} s ago; {limit}"
        )
        diagnosis.find("stalls", address, seen)
    else:
        diagnosis.passes("event loop", address, f"longest stall {stalls.longest_ms:g} ms")
