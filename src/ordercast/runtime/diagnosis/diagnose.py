"""The whole examination: every address, every node that those know, then a comparison of all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ordercast.errors import ConfigError, UsageError
from ordercast.runtime.diagnosis.catalogue import Level
from ordercast.runtime.diagnosis.clocks import check_clocks, check_delays
from ordercast.runtime.diagnosis.entry import check_entry
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.here import Doorbell, check_bind, listening
from ordercast.runtime.diagnosis.majority import check_majority
from ordercast.runtime.diagnosis.probe import Probe, probing
from ordercast.runtime.diagnosis.report import NodeSeen, Report
from ordercast.runtime.diagnosis.slowness import check_slowness
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.diagnosis.traces import check_traces
from ordercast.runtime.diagnosis.unanswered import ProbeFailed
from ordercast.runtime.diagnosis.unity import check_unity
from ordercast.runtime.diagnosis.way_back import WAY_BACK, check_way_back
from ordercast.transport.discovery import Discovery, Search
from ordercast.transport.security import is_loopback

AT_ONCE = 16  # probes
MAX_MEMBERS = 256  # of the cluster that are probed beside the addresses given
MAX_CALLS = 8  # nodes that are asked to call back

ANY_INTERFACE = "0.0.0.0"


async def diagnose(
    addresses: Iterable[str],
    subject: Subject,
    diagnosis: Diagnosis,
    *,
    discover: Discovery | None = None,
) -> None:
    """Find out why this node cannot get into the cluster at these addresses, or that it can."""
    given = list(dict.fromkeys(addresses))
    if not given and discover is None:
        raise UsageError("nothing to examine: give the address of a node, or where to discover one")
    async with listening(subject, diagnosis) as bell:
        examination = _Examination(subject, diagnosis, bell)
        if discover is not None:
            given += [
                found for found in await _search(discover, subject, diagnosis) if found not in given
            ]
        await examination.of_addresses(given)
        await examination.of_members()
    reports = examination.reports
    diagnosis.answered = len(reports)
    check_majority(reports, subject, diagnosis)
    check_unity(reports, diagnosis)
    check_entry(reports, subject, diagnosis)
    check_clocks(reports.values(), subject, diagnosis)
    check_traces(reports, diagnosis)
    check_slowness(reports, diagnosis)


async def _search(discover: Discovery, subject: Subject, diagnosis: Diagnosis) -> list[str]:
    """The addresses that a multicast group tells."""
    bound_to = ANY_INTERFACE if subject.listens_at is None else subject.listens_at[0]
    search = Search(discover, bound_to, subject.cluster, subject.security.key)
    try:
        await search.run(subject.patience)
    except (OSError, ConfigError) as error:
        diagnosis.find("not_discovered", discover.group, str(error))
        return []
    if search.found:
        told = ", ".join(f"{name} at {address}" for address, name in search.found.items())
        diagnosis.passes("discovery", discover.group, told)
    else:
        diagnosis.find("not_discovered", discover.group, search.why_nobody())
    return list(search.found)


class _Examination:
    """All probes of one diagnosis."""

    def __init__(self, subject: Subject, diagnosis: Diagnosis, bell: Doorbell | None) -> None:
        self.reports: dict[str, Report] = {}  # by the address that was asked
        self._subject = subject
        self._diagnosis = diagnosis
        self._bell = bell
        self._failures: dict[str, ProbeFailed] = {}
        self._hosts: dict[str, str] = {}  # the place in numbers, by address
        self._room = asyncio.Semaphore(AT_ONCE)
        self._calling = asyncio.Lock()  # there is one bell
        self._calls = 0

    async def of_addresses(self, addresses: list[str]) -> None:
        """Probe what the user named. One that fails is milder if another one works."""
        await self._probe_all(addresses)
        level: Level | None = "warning" if self.reports else None
        for address in addresses:
            if (failure := self._failures.get(address)) is not None:
                self._diagnosis.find(failure.code, address, failure.seen, level=level)

    async def of_members(self) -> None:
        """Probe the nodes that the others know: a joiner connects to each of them."""
        unknown = self._unknown()
        if len(unknown) > MAX_MEMBERS:
            why = f"{len(unknown)} nodes; {MAX_MEMBERS} of them were tried"
            self._diagnosis.skip("every member can be reached", why)
        tried = list(unknown.items())[:MAX_MEMBERS]
        fresh = [address for address, _ in tried if address not in self._failures]
        await self._probe_all(fresh)
        for address, (node, informant) in tried:
            self._judge_member(address, node, informant)
        if tried and all(address in self.reports for address, _ in tried):
            seen = f"all other nodes of the cluster answer ({len(tried)})"
            self._diagnosis.passes("every member can be reached", "all", seen)

    def _unknown(self) -> dict[str, tuple[NodeSeen, str]]:
        """Nodes that did not answer yet, by address, each with the address of who knows it."""
        seen = {report.identity for report in self.reports.values()}
        return {
            node.address: (node, informant)
            for informant, report in self.reports.items()
            for node in report.nodes
            if node.identity not in seen
        }

    def _judge_member(self, address: str, node: NodeSeen, informant: str) -> None:
        failure = self._failures.get(address)
        report = self.reports.get(address)
        if failure is not None:
            seen = f"{node.identity} is in the cluster, but from here: {failure.seen}"
            host = address.rpartition(":")[0]
            if is_loopback(host) and not is_loopback(self._hosts[informant]):
                seen += "; it advertises an address that only its own machine can use"
            self._diagnosis.find("member_unreachable", address, seen)
        elif self._waits_for(informant, node):
            return  # the next life of a node that is missed: told with the majority
        elif report is not None and report.identity != node.identity:
            seen = f"{report.identity} answers at the address of {node.identity}"
            self._diagnosis.find("member_elsewhere", address, seen)

    def _waits_for(self, informant: str, node: NodeSeen) -> bool:
        return node.name in self.reports[informant].stats.blocked

    async def _probe_all(self, addresses: list[str]) -> None:
        """Reports stand in the order that was asked for, whoever answers first."""
        await asyncio.gather(*map(self._probe, addresses))
        for address in addresses:
            if (report := self.reports.pop(address, None)) is not None:
                self.reports[address] = report

    async def _probe(self, address: str) -> None:
        async with self._room:
            try:
                async with probing(address, self._subject) as probe:
                    await self._examine(probe)
            except ProbeFailed as failure:
                self._failures[address] = failure

    async def _examine(self, probe: Probe) -> None:
        address, report, diagnosis = probe.address, probe.report, self._diagnosis
        self.reports[address] = report
        self._hosts[address] = probe.conn.peer[0]
        diagnosis.passes("a node answers", address, f"{report.identity}, {report.state}")
        check_bind(self._subject, probe.conn.peer[0], diagnosis)
        check_delays(report, address, probe.round_trips, diagnosis)
        async with self._calling:
            if self._calls < MAX_CALLS:
                self._calls += 1
                await check_way_back(probe, self._bell, diagnosis)
            else:
                diagnosis.skip(WAY_BACK, f"{MAX_CALLS} nodes were asked; the others were not")
