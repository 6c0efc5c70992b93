"""The panel of judges of one run: one per promise, each on the rows that the promise is about.

What a trace declares for some groups (order, protocol and scope: a domain) holds among those groups
and is judged on their rows alone, as `ordercast verify` does. With expectations of the user there
is one judge for all rows. Only what is expected is told.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ordercast.errors import TraceError
from ordercast.judge.expectations import ALWAYS, promised
from ordercast.pipeline.streaming.journal import RunStatus
from ordercast.pipeline.streaming.live import Limits, LiveJudge, Notice
from ordercast.pipeline.streaming.live.notices import EXCUSED, VIOLATED, WITHDRAWN
from ordercast.pipeline.streaming.live.state import ORDERS, RunState
from ordercast.trace.schema import HYBRIDS, Event

REST = ""  # the judge of everything for which no order is declared
STATE_VERSION = b"\x01"
MOST_FINAL_ROWS = 10_000  # crashes, ends and losses remembered for judges that begin later


class PanelState(msgspec.Struct):
    """Everything that is remembered of a run."""

    judges: dict[str, RunState] = {}  # by what they judge: order|protocol|scope
    domains: dict[str, str] = {}  # group -> its judge, from its first row on
    final_rows: list[Event] = []  # rows that belong to no group
    told: set[str] = set()  # notices that several judges could give
    expected: tuple[str, ...] = ()  # what the user asked for when it began
    events: int = 0
    clock_ms: int = 0  # the time as the judges know it ...
    seen_ms: int = 0  # ... and the true time of the batch before


class Panel:
    """Judges one run, batch by batch."""

    def __init__(
        self,
        memory: bytes | None = None,
        *,
        expected: tuple[str, ...] = (),
        stable_ms: int = 5_000,
        limits: Limits | None = None,
        backlog_rows: int = 2**62,
    ) -> None:
        """`memory` is what `encode` gave after the batch before.

        While batches have `backlog_rows` rows, the reader is behind, and time stands still: what
        was not read yet is not overdue.
        """
        self.state = PanelState(expected=expected) if memory is None else _decode(memory)
        if set(self.state.expected) != set(expected):
            had = ", ".join(self.state.expected) or "what the trace declares"
            reason = f"it was begun to judge {had}"
            raise TraceError("the checkpoint", None, None, reason)
        self.expected = expected
        self.stable_ms = stable_ms
        self.limits = limits or Limits()
        self.backlog_rows = backlog_rows

    def encode(self) -> bytes:
        return STATE_VERSION + msgspec.msgpack.encode(self.state)

    def feed(self, rows: Iterable[Event], now_ms: int) -> list[Notice]:
        """Judge these rows at this time; what is new and expected to hold."""
        rows = list(rows)
        self.state.events += len(rows)
        self._pass_time(now_ms, is_behind=len(rows) >= self.backlog_rows)
        parts = self._parts(rows)
        notices = []
        for name, state in self.state.judges.items():
            judge = LiveJudge(state, stable_ms=self.stable_ms, limits=self.limits)
            wanted = _base_names(self._expected_of(name))
            for notice in judge.feed(parts.get(name, ()), self.state.clock_ms):
                if self._is_told(notice, wanted):
                    notices.append(notice)
        return notices

    def _pass_time(self, now_ms: int, *, is_behind: bool) -> None:
        state = self.state
        if not state.seen_ms:
            state.clock_ms = now_ms
        elif not is_behind:
            state.clock_ms += max(0, now_ms - state.seen_ms)
        state.seen_ms = now_ms

    def _parts(self, rows: Iterable[Event]) -> dict[str, list[Event]]:
        parts: dict[str, list[Event]] = {}
        if self.expected:
            self._judge(REST, parts)
            parts[REST] += rows
            return parts
        others = []
        for row in rows:
            if row.kind == "group":
                self._declare(row, parts)
            else:
                others.append(row)
        for row in others:
            if row.group is not None:
                name = self.state.domains.setdefault(row.group, REST)
                self._judge(name, parts).append(row)
        self._to_all([row for row in others if row.group is None], parts)
        return parts

    def _declare(self, row: Event, parts: dict[str, list[Event]]) -> None:
        group = row.group or ""
        if row.order is not None:
            domain = f"{row.order}|{row.protocol or ''}|{row.scope or 'domain'}"
            known = self.state.domains.setdefault(group, domain)
            if known == REST:  # rows of the group were judged before: its past is not known there
                self._judge(REST, parts)
                self.state.judges[REST].doubt(f"the order of {group} was declared after its rows")
        self._judge(self.state.domains.get(group, REST), parts).append(row)

    def _judge(self, name: str, parts: dict[str, list[Event]]) -> list[Event]:
        """The rows for this judge, who begins now if need be."""
        if name not in self.state.judges:
            checks = _base_names(self._expected_of(name)) & set(ORDERS)
            self.state.judges[name] = RunState(checks=checks)
            parts[name] = list(self.state.final_rows)
        return parts.setdefault(name, [])

    def _to_all(self, rows: list[Event], parts: dict[str, list[Event]]) -> None:
        if not self.state.judges:
            self._judge(REST, parts)
        for name in self.state.judges:
            parts.setdefault(name, []).extend(rows)
        room = MOST_FINAL_ROWS - len(self.state.final_rows)
        self.state.final_rows += [row for row in rows if row.kind in ("crash", "end", "lost")][
            :room
        ]

    def _expected_of(self, judge: str) -> tuple[str, ...]:
        if self.expected:
            return self.expected
        order, _, rest = judge.partition("|")
        return (*ALWAYS, *promised(order, rest.rpartition("|")[2]))

    def _is_told(self, notice: Notice, wanted: set[str]) -> bool:
        about_order = notice.kind in (VIOLATED, EXCUSED, WITHDRAWN)
        if about_order and notice.property not in wanted:
            return False
        if notice.property != "wellformed" and notice.kind != "limit":
            return True
        once = f"{notice.kind}|{notice.about}"
        if once in self.state.told:
            return False
        self.state.told.add(once)
        return True

    def status(self, run: str) -> RunStatus:
        """How the run stands now."""
        states = self.state.judges.values()
        expected, violated = [], []
        doubts: dict[str, int] = {}
        for name, state in self.state.judges.items():
            judge = LiveJudge(state)
            for one in self._expected_of(name):
                expected.append(one)
                if judge.violated(one):
                    violated.append(one)
            for what, count in state.doubts.items():
                doubts[what] = doubts.get(what, 0) + count
        return RunStatus(
            run=run,
            events=self.state.events,
            processes=len({p.name for s in states for p in s.processes}),
            remembered=sum(len(s.messages) for s in states),
            waiting_rows=sum(len(p.held) for s in states for p in s.processes),
            overdue=sum(s.messages[n].debtors for s in states for n in s.old if n in s.messages),
            latest_ns=max((s.latest_ns for s in states), default=0),
            now_ms=max((s.now_ms for s in states), default=0),
            idle=all(LiveJudge(s).is_idle() for s in states),
            violated=tuple(dict.fromkeys(violated)),
            expected=tuple(dict.fromkeys(expected)),
            doubts=doubts,
        )


def _base_names(names: Iterable[str]) -> set[str]:
    """The properties that findings name: hybrids as their parts, `.uniform` forms as the plain."""
    bases = (name.removesuffix(".uniform") for name in names)
    return {part for base in bases for part in HYBRIDS.get(base, (base,))}


def _decode(memory: bytes) -> PanelState:
    if memory[:1] != STATE_VERSION:
        reason = "its state is of another version of Ordercast"
        raise TraceError("the checkpoint", None, None, reason)
    return msgspec.msgpack.decode(memory[1:], type=PanelState)
