"""Logs of programs that never ran: for the tests of the chaos judge.

    run = MadeUp(order="total")
    run.members("a", "b")                  a first view of both, at both
    run.send("a", "1")                     a multicast by a, not delivered yet
    run.get("b", "a.1/1")                  a delivery
    run.findings()                         what the judge says

Every line gets its own second, in the order of the calls.
"""

from __future__ import annotations

from typing import Any

from chaos.judge import Finding, judge
from chaos.logs import Log
from chaos.outcome import Outcome
from chaos.plan import Group, Plan

GROUP = "g0"


class MadeUp:
    """One group, or several that are joined alike, and a log for each process."""

    def __init__(self, *, groups: int = 1, merges: bool = False, **join: Any) -> None:
        options: dict[str, Any] = {"suspect_ms": 500}
        if merges:
            options["partition"] = "merge"
        names = tuple("abcd")
        made = tuple(Group(f"g{number}", join, names) for number in range(groups))
        self.plan = Plan(
            0, names, made, options, {}, 1.0, 1, {}, {}, "asyncio", False, faults=()
        )  # fmt: skip
        self.outcome = Outcome(0)
        self.logs: dict[str, Log] = {}
        self._now = 0.0

    def note(self, process: str, *entry: Any) -> None:
        """A line in the log of "name" (its first life) or "name.life"."""
        name, _, life = process.partition(".")
        log = self.logs.setdefault(f"{name}.{life or 1}", Log(name, int(life or 1)))
        self._now += 1.0
        log.entries.append([self._now, *entry])

    def members(self, *names: str, number: int = 1, group: str = GROUP) -> None:
        """A first view of exactly these, at each of them."""
        for name in names:
            if name not in {log.name for log in self.logs.values()}:
                self.note(name, "up", 1)
            self.view(name, number, names, joined=names, group=group)

    def view(
        self,
        process: str,
        number: int,
        members: tuple[str, ...],
        *,
        joined: tuple[str, ...] = (),
        group: str = GROUP,
    ) -> None:
        """A view at one process."""
        self.note(process, "view", group, number, list(members), list(joined), [], 1)

    def send(self, process: str, number: str, *, group: str = GROUP, incarnation: int = 1) -> str:
        """A multicast that returned; the message."""
        name, _, life = process.partition(".")
        message = f"{name}.{life or 1}/{number}"
        self.note(process, "send", group, message, 7, incarnation)
        self.note(process, "sent", message, incarnation)
        return message

    def get(self, process: str, *messages: str, group: str = GROUP) -> None:
        """Deliveries at one process."""
        for message in messages:
            self.note(process, "got", group, message.split(".")[0], message, 7)

    def everybody_gets(self, *messages: str) -> None:
        for process in self.logs:
            self.get(process, *messages)

    def settle(self) -> None:
        """The run ends in order, with all who were not killed."""
        self._now += 1.0
        self.outcome.settled = self._now
        self.outcome.living = [name for name in self.logs if name not in self.outcome.killed]

    def kill(self, process: str) -> None:
        self.outcome.killed.append(process if "." in process else f"{process}.1")

    def findings(self) -> list[Finding]:
        """What the judge says of a run that has settled."""
        if self.outcome.settled is None:
            self.settle()
        return judge(self.plan, self.outcome, list(self.logs.values()))

    def broken(self) -> set[str]:
        """The properties that do not hold."""
        return {finding.property for finding in self.findings()}
