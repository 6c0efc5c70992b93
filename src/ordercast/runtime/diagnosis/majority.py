"""Nodes that are cut off: does the rest of the cluster go on? If not, what can be done?"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.report import Report
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.diagnosis.unity import ON_ITS_WAY, Reports, signs_of
from ordercast.runtime.lost_majority import all_of, recover_command

CHECK = "a majority is there"


def check_majority(reports: Reports, subject: Subject, diagnosis: Diagnosis) -> None:
    """Only where nobody goes on may an operator be told how to do without the missing nodes."""
    running = {address: report for address, report in reports.items() if report.nodes}
    cut_off = {address: report for address, report in running.items() if report.stats.blocked}
    if running and not cut_off:
        diagnosis.passes(CHECK, ", ".join(running), "nobody is cut off")
    elif _others_go_on(cut_off.values(), running.values()):
        for address, report in cut_off.items():
            seen = f"{_missed(report)}; others that answer are not cut off"
            diagnosis.find("partition", address, seen)
    elif cut_off:
        address, report = min(cut_off.items(), key=lambda item: len(item[1].stats.blocked))
        _nobody_goes_on(address, report, _started_again(report, reports), subject, diagnosis)


def _others_go_on(cut_off: Iterable[Report], running: Iterable[Report]) -> bool:
    """Does another side of this cluster go on? Another cluster of its name does not count."""
    signs = signs_of(cut_off)
    return any(signs & signs_of([one]) for one in running if not one.stats.blocked)


def _nobody_goes_on(
    address: str, report: Report, again: list[str], subject: Subject, diagnosis: Diagnosis
) -> None:
    view, seen = report.stats.node_view, _missed(report)
    if again:
        seen += f"; started again, and not let in: {', '.join(again)}"
    if set(view.voters) <= set(report.stats.suspicions):
        diagnosis.find("no_voter", address, f"{seen}; no node that votes is here")
        return
    if view.electorate:
        seen += f"; it goes on by itself {all_of(view.electorate)}"
    command = recover_command(address, subject.cluster, subject.security)
    diagnosis.find("no_majority", address, seen, command=command)


def _started_again(report: Report, reports: Reports) -> list[str]:
    waiting = {one.name for one in reports.values() if one.state in ON_ITS_WAY}
    return [name for name in report.stats.blocked if name in waiting]


def _missed(report: Report) -> str:
    number, missing = report.stats.node_view.number, ", ".join(report.stats.blocked)
    return f"{report.identity} is cut off: of node view {number} it cannot reach {missing}"
