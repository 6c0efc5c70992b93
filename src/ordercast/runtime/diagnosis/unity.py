"""Is it one cluster? Compares which nodes several nodes name."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.report import NodeSeen, Report

CHECK = "it is one cluster"
MAX_NAMES = 8  # of a list that is shown
ON_ITS_WAY = ("joining", "starting")  # states of a node that is in no cluster yet

Reports = dict[str, Report]  # by the address that was asked


def check_unity(reports: Reports, diagnosis: Diagnosis) -> None:
    """Compare the words of all nodes that answered."""
    _check_states(reports, diagnosis)
    running = {address: report for address, report in reports.items() if report.nodes}
    if not running:
        return
    sides = _sides(running)
    if len(sides) == 1:
        _check_lists(running, diagnosis)
        _check_rivals(running, diagnosis)
        return
    where = ", ".join(address for side in sides for address in list(side)[:1])
    seen = "; ".join(sorted(_told(side) for side in sides))
    if len(running) > 1 and all(len(report.nodes) == 1 for report in running.values()):
        diagnosis.find("each_alone", where, f"each node formed its own cluster: {seen}")
    elif _were_one(sides):
        diagnosis.find("partition", where, f"one cluster, but {len(sides)} sides: {seen}")
    else:
        diagnosis.find("several_clusters", where, f"{len(sides)} clusters of one name: {seen}")


def _check_states(reports: Reports, diagnosis: Diagnosis) -> None:
    looking = [address for address, report in reports.items() if report.state in ON_ITS_WAY]
    if looking and len(looking) == len(reports):
        seen = f"{_names(reports.values())} look for a cluster themselves, and none is in one"
        diagnosis.find("nobody_leads", ", ".join(looking), seen)
        return
    for address, report in reports.items():
        if report.state in ON_ITS_WAY:
            diagnosis.find("joining", address, f"{report.name!r} looks for its cluster itself")
        elif report.state == "out":
            diagnosis.find("out", address, f"{report.name!r} is out: {report.out_reason}")
        elif report.state != "running":
            diagnosis.find(
                "not_running", address, f"{report.identity} says that it is {report.state!r}"
            )


def _sides(reports: Reports) -> list[Reports]:
    """The nodes that name the same coordinator."""
    sides: dict[tuple[str, str], Reports] = {}
    for address, report in reports.items():
        sides.setdefault(report.side, {})[address] = report
    return list(sides.values())


def _were_one(sides: list[Reports]) -> bool:
    """Do two of them record under one name, or count the same node as theirs?"""
    signs = [signs_of(side.values()) for side in sides]
    return any(one & other for one, other in combinations(signs, 2))


def signs_of(reports: Iterable[Report]) -> set[object]:
    """By which nodes of one cluster are known, however it fell apart."""
    signs: set[object] = set()
    for report in reports:
        signs |= {report.run, *((node.identity, node.address) for node in report.nodes)}
    return signs


def _told(side: Reports) -> str:
    report = max(side.values(), key=lambda one: len(one.nodes))
    nodes = len(report.nodes)
    rest = "is alone" if nodes == 1 else f"is followed by {nodes - 1} ({_names(report.nodes)})"
    return f"{report.coordinator or report.identity} {rest}"


def _check_lists(reports: Reports, diagnosis: Diagnosis) -> None:
    """One coordinator: do all know the same nodes?"""
    lists = {address: {node.identity for node in r.nodes} for address, r in reports.items()}
    everybody = set().union(*lists.values())
    for address, known in lists.items():
        if missing := sorted(everybody - known):
            who = reports[address].identity
            seen = f"{who} does not know {', '.join(missing[:MAX_NAMES])}, which others know"
            diagnosis.find("lists_differ", address, seen)
            return
    one = next(iter(reports.values()))
    seen = f"{len(everybody)} nodes, coordinated by {one.coordinator or one.identity}"
    diagnosis.passes(CHECK, ", ".join(list(reports)[:MAX_NAMES]), seen)
    releases = {report.version: report.identity for report in reports.values()}
    if len(releases) > 1:
        seen = ", ".join(f"{who} runs {version}" for version, who in sorted(releases.items()))
        diagnosis.find("releases_differ", next(iter(reports)), seen)


def _check_rivals(reports: Reports, diagnosis: Diagnosis) -> None:
    """All who were asked are in one cluster; does one of them know of another?"""
    for address, report in reports.items():
        for other in report.stats.other_clusters:
            seen = (
                f"{report.identity} is in the cluster of {report.coordinator}, and {other.address} "
                f"answers as another one of that name, coordinated by {other.coordinator} "
                f"(nodes: {other.nodes})"
            )
            diagnosis.find("second_cluster", address, seen)
            return


def _names(nodes: Iterable[NodeSeen | Report]) -> str:
    names = [node.name for node in nodes]
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
