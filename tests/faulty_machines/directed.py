"""For every erratum the smallest schedule that shows it, on the faulty machine and on the right."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from faulty_machines.unchecked import unchecked
from machines import Bench
from ordercast.core.protocol import OrderingProtocol
from ordercast.trace.oracle import verdicts

Protocol = type[OrderingProtocol]
Schedule = Callable[[Protocol], Bench]  # plays itself with this machine at every process


class Directed(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule, carried by hand."""

    name: str  # begins with the erratum, or with the section of the rule
    breaks: str  # the property that must be found violated
    wrong: Protocol
    right: Protocol
    schedule: Schedule

    def played(self) -> tuple[Bench, Bench]:
        """The faulty machine and the right one under it, each judged by the oracle."""
        wrong, right = self.schedule(unchecked(self.wrong)), self.schedule(self.right)
        found = [verdicts(bench.trace())[self.breaks] for bench in (wrong, right)]
        assert found == ["violated", "ok"], f"{self.name}: {self.breaks} is {found}"
        return wrong, right
