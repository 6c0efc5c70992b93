"""Is this outcome right? The oracle of traces decides; equal outcomes are judged once."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.exploration.process import CLOSED, Entry
from ordercast.exploration.scenario import Scenario, message_name
from ordercast.exploration.space import Outcome
from ordercast.trace.oracle.judge import GENERAL, ORDERS
from ordercast.trace.oracle.logs import Run
from ordercast.trace.schema import HYBRIDS, Event, Violation

LIVE = ("validity", "agreement", "agreement.uniform")  # need somebody to answer


class Judge:
    """Judges what the protocol of a scenario promises, and what else is expected of it.

    In a run without a crash everything said has to reach everybody, promised or not: every network
    but N0 brings it there, and a protocol for N0 has to. After a crash some wait for the dead, for
    good, as no view ever changes here: then only the order is judged, and what was asked for.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        promises, also = scenario.protocol.declaration.promises, scenario.expect
        safe = (name for name in promises if name not in LIVE)
        self.expected = tuple(dict.fromkeys((*promises, "agreement", *also)))
        self.expected_after_a_crash = tuple(dict.fromkeys((*safe, *also)))
        self.verdicts: dict[Outcome, Violation | None] = {}

    def violation(self, outcome: Outcome) -> Violation | None:
        """The first broken promise, or None."""
        if any(log[:1] == CLOSED for log in outcome.logs):
            return self._after_the_end(outcome)
        if outcome not in self.verdicts:
            self.verdicts[outcome] = self._look(outcome)
        return self.verdicts[outcome]

    def _look(self, outcome: Outcome) -> Violation | None:
        said = {entry.what for log in outcome.logs for entry in log if entry.kind == "send"}
        for p, log in enumerate(outcome.logs):
            for entry in log:
                if entry.kind in ("fault", "error") or entry.what not in said:
                    return _mistake(p, entry)
        run = Run(list(events(self.scenario, outcome)))
        expected = self.expected_after_a_crash if any(outcome.crashed) else self.expected
        for name in expected:
            for violation in _violations(name, run):
                return violation
        return None

    def _after_the_end(self, outcome: Outcome) -> Violation | None:
        """Everything was delivered and judged before; whatever was delivered since is too much."""
        said = {message_name(k) for k in range(len(self.scenario.script))}
        for p, log in enumerate(outcome.logs):
            for entry in log[1:]:
                if entry.kind != "deliver" or entry.what not in said:
                    return _mistake(p, entry)
                sentence = f"p{p} delivers {entry.what} after everything was delivered."
                return Violation("no_duplication", sentence, {"process": f"p{p}"})
        return None


def events(scenario: Scenario, outcome: Outcome) -> Iterator[Event]:
    """The outcome as a trace."""
    declaration = scenario.protocol.declaration
    for g, members in enumerate(scenario.groups, start=1):
        yield Event(
            None,
            None,
            "group",
            group=f"g{g}",
            members=tuple(f"p{p}" for p in members),
            order=declaration.order,
            protocol=declaration.name,
            scope=declaration.scope,
        )
    for p, log in enumerate(outcome.logs):
        for index, entry in enumerate(log):
            yield Event(f"p{p}", index, entry.kind, entry.what, f"g{entry.group}")
        if outcome.crashed[p]:
            yield Event(f"p{p}", len(log), "crash")
        elif outcome.ended:
            yield Event(f"p{p}", len(log), "end")


def _violations(name: str, run: Run) -> tuple[Violation, ...]:
    plain = name.removesuffix(".uniform")
    if name in GENERAL:
        return GENERAL[name](run).violations
    if plain in HYBRIDS:
        form = name.removeprefix(plain)
        return tuple(v for part in HYBRIDS[plain] for v in _violations(part + form, run))
    return ORDERS[plain](run, uniform=name.endswith(".uniform")).violations


def _mistake(p: int, entry: Entry) -> Violation:
    if entry.kind == "fault":
        sentence = f"p{p} blames a peer that did nothing wrong, {entry.what}."
        return Violation("no_fault", sentence, {"process": f"p{p}", "reason": entry.what})
    if entry.kind == "deliver":
        sentence = f"p{p} delivers {entry.what!r}, which nobody has said."
        return Violation("no_creation", sentence, {"process": f"p{p}", "message": entry.what})
    sentence = f"The machine of p{p} broke: {entry.what}"
    return Violation("no_error", sentence, {"process": f"p{p}", "reason": entry.what})
