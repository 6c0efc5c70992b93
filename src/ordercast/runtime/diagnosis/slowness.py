"""Finds programs that hold up others: they do not read, or block their event loop."""

from __future__ import annotations

from collections.abc import Mapping

from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.report import Report


def check_slowness(reports: Mapping[str, Report], diagnosis: Diagnosis) -> None:
    """Every slow member and every loop that stands is found once, whoever tells of it."""
    slow: dict[tuple[str, str], float] = {}
    standing: dict[str, float] = {}
    for report in reports.values():
        for group, seen in {**report.stats.guest_of, **report.stats.groups}.items():
            for member, seconds in seen.slow_members.items():
                slow[member, group] = max(seconds, slow.get((member, group), 0.0))
        for node, seconds in report.stats.pulses.standing_still.items():
            standing[node] = max(seconds, standing.get(node, 0.0))
    for (member, group), seconds in slow.items():
        seen_so = f"the program of {member} has taken nothing of group {group!r} for {seconds:g} s"
        diagnosis.find("slow_member", member, f"{seen_so}: senders wait for it")
    for node, seconds in standing.items():
        diagnosis.find(
            "standing", node, f"the event loop of {node} has stood still for {seconds:g} s"
        )
    if reports and not slow and not standing:
        diagnosis.passes("programs read", "all", "no member holds the others up")
    for address, report in reports.items():
        if report.stats.pulses.never_heard_from:
            names = ", ".join(report.stats.pulses.never_heard_from)
            seen_so = f"no pulse has come at UDP port {report.stats.pulses.port} from {names}"
            diagnosis.find("no_pulses", address, seen_so)
