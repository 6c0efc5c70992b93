"""Would the cluster let this node in: its name, its options, its group?"""

from __future__ import annotations

from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.report import GroupSeen, Report
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.options import NodeOptions

Reports = dict[str, Report]  # by the address that was asked


def check_entry(reports: Reports, subject: Subject, diagnosis: Diagnosis) -> None:
    """Everything that a coordinator looks at."""
    running = {address: report for address, report in reports.items() if report.nodes}
    answering = {report.identity for report in running.values()}
    for address, report in _spokesmen(running).items():
        _check_name(address, report, answering, subject, diagnosis)
        _check_room(address, report, subject, diagnosis)
        _check_options(address, report, subject, diagnosis)
    _check_group(running, subject, diagnosis)


def _spokesmen(reports: Reports) -> Reports:
    """One node of each cluster: the one that lets others in, if it was asked."""
    spokesmen: dict[tuple[str, str], str] = {}
    for address, report in reports.items():
        if report.side not in spokesmen or report.coordinates:
            spokesmen[report.side] = address
    return {address: reports[address] for address in spokesmen.values()}


def _check_name(
    address: str, report: Report, answering: set[str], subject: Subject, diagnosis: Diagnosis
) -> None:
    if subject.name is None:
        diagnosis.skip("the name is free", "give --name to have it checked")
        return
    namesake = next((node for node in report.nodes if node.name == subject.name), None)
    if namesake is None:
        diagnosis.passes("the name is free", address, f"nobody is named {subject.name!r}")
        return
    answers = "it answers" if namesake.identity in answering else "it does not answer from here"
    if namesake.address == subject.bind:
        answers += "; that is your own --bind: it may run already"
    seen = f"{namesake.identity} is in the cluster, at {namesake.address}; {answers}"
    diagnosis.find("name_taken", namesake.address, seen)


def _check_room(address: str, report: Report, subject: Subject, diagnosis: Diagnosis) -> None:
    stats, leads = report.stats, report.stats.leads
    if not report.coordinates:
        return  # the coordinator counts
    if stats.max_nodes and stats.nodes >= stats.max_nodes:
        seen = f"{stats.nodes} nodes are in, and max_nodes={stats.max_nodes}"
        diagnosis.find("full", address, seen)
    else:
        diagnosis.passes("room for a node", address, f"{stats.nodes} of {stats.max_nodes}")
    known = {group.name for group in report.groups}
    is_new = subject.group is not None and subject.group not in known
    if is_new and leads is not None and 0 < leads.max_groups <= leads.groups:
        seen = f"the cluster has {leads.groups} groups, and max_groups={leads.max_groups}"
        diagnosis.find("groups_full", address, seen)


def _check_options(address: str, report: Report, subject: Subject, diagnosis: Diagnosis) -> None:
    given, usual = subject.shared(), NodeOptions().shared()
    theirs = report.shared_options
    agrees = True
    for option in usual.keys() & theirs.keys():
        there = f"{option}={theirs[option]!r} at {report.identity}"
        if option in given and given[option] != theirs[option]:
            agrees = False
            diagnosis.find("options_differ", address, f"{there}, {given[option]!r} at your node")
        elif option not in given and usual[option] != theirs[option]:
            diagnosis.find("options_not_default", address, f"{there}; default {usual[option]!r}")
    if theirs.get("transport", "tcp") != "tcp":
        why = f"packets of this cluster travel over {theirs['transport']}; only TCP is checked"
        diagnosis.skip("datagrams pass", why)
    if agrees:
        shown = ", ".join(f"{name}={value}" for name, value in theirs.items())
        diagnosis.passes("options that all share", address, shown)


def _check_group(reports: Reports, subject: Subject, diagnosis: Diagnosis) -> None:
    if subject.group is None:
        diagnosis.skip("the group's order", "give --group and --order to have it checked")
        return
    found = _group_named(subject.group, reports)
    if found is None:
        if any(report.coordinates for report in reports.values()):
            seen = f"there is no group {subject.group!r} yet"
            diagnosis.find("group_is_new", next(iter(reports)), seen)
        return
    address, group = found
    have = f"order {group.order!r} (protocol {group.protocol!r})"
    order_fits = subject.order in (None, group.order)
    if order_fits and subject.protocol in (None, group.protocol):
        members = ", ".join(group.members) or "nobody"
        diagnosis.passes("the group's order", address, f"{have}; in it: {members}")
        return
    want = f"order {subject.order!r}" if subject.order else "any order"
    want += f" (protocol {subject.protocol!r})" if subject.protocol else ""
    seen = f"group {subject.group!r} has {have}; your node asks for {want}"
    diagnosis.find("order_mismatch", address, seen)


def _group_named(name: str, reports: Reports) -> tuple[str, GroupSeen] | None:
    for address, report in reports.items():
        for group in report.groups:
            if group.name == name:
                return address, group
    return None
