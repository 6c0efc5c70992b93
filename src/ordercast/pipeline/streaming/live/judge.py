"""The incremental judge of one run.

Rows are taken in the order of happened-before: each log by itself in the order of its indexes, and
a delivery only after the send of its message. Logs are read at different speeds, so a log waits at
a delivery whose send has not been read. It goes on without the send if the named sender's log is
complete, if the sends of several logs wait for one another (then the trace contradicts itself), or
when the stability time is over.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ordercast.errors import TraceError
from ordercast.pipeline.streaming.live import cycles, membership, memory, pairs, predecessors, views
from ordercast.pipeline.streaming.live.ledger import is_violated, recheck, tell, withdraw
from ordercast.pipeline.streaming.live.notices import LIMIT, Notice
from ordercast.pipeline.streaming.live.state import (
    EVERYTHING,
    NOBODY,
    HeldRow,
    Limits,
    Message,
    Process,
    RunState,
    Trail,
)
from ordercast.trace.expand import is_crash_note
from ordercast.trace.schema import MEANINGFUL_KINDS, Event

STATE_VERSION = b"\x01"
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(RunState)


class LiveJudge:
    """Judges one run, batch by batch. Its whole memory is `state`, which is plain data."""

    def __init__(
        self, state: RunState, *, stable_ms: int = 5_000, limits: Limits | None = None
    ) -> None:
        self.state = state
        self.stable_ms = stable_ms
        self.limits = limits or Limits()

    @classmethod
    def decode(
        cls, data: bytes, *, stable_ms: int = 5_000, limits: Limits | None = None
    ) -> LiveJudge:
        """The judge whose `encode` gave these bytes."""
        if data[:1] != STATE_VERSION:
            raise TraceError("the checkpoint", None, None, "its state is of another version")
        return cls(_decoder.decode(data[1:]), stable_ms=stable_ms, limits=limits)

    def encode(self) -> bytes:
        return STATE_VERSION + _encoder.encode(self.state)

    def feed(self, rows: Iterable[Event], now_ms: int) -> list[Notice]:
        """Judge these rows at this time; returns what is new. Rows may also be none at all."""
        run = self.state
        run.now_ms = max(now_ms, run.now_ms)
        self._read(rows)
        self._go_on(run.now_ms - self.stable_ms)
        memory.tidy(run, self.limits, self.stable_ms)
        notices, run.notices = run.notices, []
        return notices

    def settle(self) -> list[Notice]:
        """Nothing more will come: judge what still waits for a send."""
        self._go_on(self.state.now_ms)
        memory.settle(self.state, self.limits)
        notices, self.state.notices = self.state.notices, []
        return notices

    def violated(self, name: str) -> bool:
        """Does something stand against this property?"""
        return is_violated(self.state, name)

    def is_idle(self) -> bool:
        """Nothing waits, and nobody is owed anything that time alone could change."""
        run = self.state
        return not any(p.held for p in run.processes) and run.young_from == run.next_message

    # -- reading ----------------------------------------------------------------------------------

    def _read(self, rows: Iterable[Event]) -> None:
        run = self.state
        logs: dict[str, list[Event]] = {}
        for row in rows:
            run.events += 1
            run.latest_ns = max(run.latest_ns, row.time or 0)
            if row.kind == "group":
                membership.declare(run, self.limits, row.group or "", list(row.members or ()))
            elif is_crash_note(row):
                run.process(row.process or "").noted = True
                recheck(run)
            else:
                logs.setdefault(row.process or "", []).append(row)
        for name, log in logs.items():
            log.sort(key=lambda row: row.index or 0)
            p = run.process(name)
            for row in log:
                self._queue(p, row)

    def _queue(self, p: Process, row: Event) -> None:
        index = row.index or 0
        if p.last_index is not None and index <= p.last_index:
            self._out_of_order(p, row, index)
            return
        p.last_index = index
        if p.ended or p.crashed or (p.held and p.held[-1].kind in ("end", "crash")):
            tell(
                self.state, self.limits, "wellformed", (p.name, "after the last"),
                f"{p.name} has a `{row.kind}` after its last event.",
                {"process": p.name, "second": index},
            )  # fmt: skip
        if row.kind not in MEANINGFUL_KINDS:
            return
        if row.kind == "send":
            self.state.upcoming.setdefault(row.message or "", p.number)
        p.held.append(
            HeldRow(
                row.kind, row.message or "", row.group or "", row.sender, row.view or 0,
                list(row.members or ()),
            )
        )  # fmt: skip

    def _out_of_order(self, p: Process, row: Event, index: int) -> None:
        """Too late to judge. Whatever it would have excused must not stand against p."""
        run = self.state
        if index == p.last_index:
            tell(
                run, self.limits, "wellformed", (p.name, "index", str(index)),
                f"{p.name} has two events with index {index}.",
                {"process": p.name, "index": index},
            )  # fmt: skip
        elif run.doubt("rows that came after later rows of their log"):
            text = f"a row of {p.name} (index {index}) came after later ones: it is not judged"
            run.notices.append(Notice(LIMIT, "", "late rows", text))
        self._lost(p)
        message = row.message
        if message is not None:
            withdraw(
                run, lambda f: message in f.witness.values(), f"a row about {message} came late"
            )

    # -- in the order of happened-before ----------------------------------------------------------

    def _go_on(self, give_up_ms: int) -> None:
        """Judge all that can be judged; what waits since `give_up_ms` goes on without a send."""
        run = self.state
        ready = [p for p in run.processes if p.held and p.blocked_ms < 0]
        while True:
            self._pump(ready)
            ready = self._contradictions() or self._given_up(give_up_ms)
            if not ready:
                break

    def _pump(self, ready: list[Process]) -> None:
        while ready:
            p = ready.pop()
            done = 0
            for row in p.held:
                if row.kind == "deliver" and self._must_wait(p, row):
                    p.blocked_ms = self.state.now_ms
                    self.state.waiting.setdefault(row.message, []).append(p.number)
                    break
                done += 1
                ready += self._take(p, row)
            del p.held[:done]

    def _must_wait(self, p: Process, row: HeldRow) -> bool:
        run = self.state
        if row.message in run.message_numbers or row.message in run.forgotten:
            return False
        return row.message not in p.forgotten and not self._was_never_sent(row)

    def _was_never_sent(self, row: HeldRow) -> bool:
        number = self.state.process_numbers.get(row.sender or "")
        return (
            number is not None
            and row.message not in self.state.upcoming
            and self._is_complete(self.state.processes[number])
        )

    def _is_complete(self, s: Process) -> bool:
        return s.ended and not s.crashed and not s.lost and not self.state.forgotten.forgotten

    def _blocked(self) -> list[Process]:
        return [p for p in self.state.processes if p.blocked_ms >= 0]

    def _unblock(self, p: Process) -> None:
        p.blocked_ms = -1
        message = p.held[0].message
        others = self.state.waiting[message]
        others.remove(p.number)
        if not others:
            del self.state.waiting[message]

    def _given_up(self, give_up_ms: int) -> list[Process]:
        """Those who waited too long, after their next row has been taken without its send."""
        run = self.state
        too_many = sum(len(p.held) for p in run.processes) > self.limits.held_rows
        if too_many and run.doubt("deliveries judged without their send, for lack of room"):
            text = f"more than {self.limits.held_rows} rows wait for a send that was not read"
            run.notices.append(Notice(LIMIT, "", "held rows", text))
        freed = []
        for p in self._blocked():
            waited = p.blocked_ms <= give_up_ms or too_many
            if waited and p.held[0].message not in run.upcoming:
                self._unblock(p)
                run.doubt("deliveries judged without their send")
                freed += self._take(p, p.held.pop(0))
                freed.append(p)
        return freed

    def _contradictions(self) -> list[Process]:
        """Logs that wait for one another for ever: each delivery happened before its send."""
        run = self.state
        for p in self._blocked():
            circle: list[int] = []
            here: int | None = p.number
            while here is not None and here not in circle:
                circle.append(here)
                q = run.processes[here]
                here = run.upcoming.get(q.held[0].message) if q.blocked_ms >= 0 else None
            if here is not None:
                return self._break([run.processes[n] for n in circle[circle.index(here) :]])
        return []

    def _break(self, circle: list[Process]) -> list[Process]:
        run = self.state
        run.doubt("circles of happened-before")
        said = ", then ".join(f"{p.name} delivered {p.held[0].message}" for p in circle)
        tell(
            run, self.limits, "wellformed", ("circle",),
            f"An event happened before itself: {said}, then the first again.",
            {"cycle": [[p.name, p.held[0].message] for p in circle]},
        )  # fmt: skip
        freed = []
        for p in circle:
            message = p.held[0].message
            tell(
                run, self.limits, "no_creation", (p.name, message, "before its send"),
                f"The delivery of {message} at {p.name} happened before its send.",
                {"process": p.name, "message": message},
            )  # fmt: skip
            self._unblock(p)
            freed += self._take(p, p.held.pop(0))
        return freed + circle

    # -- one row ----------------------------------------------------------------------------------

    def _take(self, p: Process, row: HeldRow) -> list[Process]:
        """Judge the row; returns the processes that need not wait any longer."""
        p.position += 1
        run, limits = self.state, self.limits
        match row.kind:
            case "send":
                return self._send(p, row)
            case "deliver":
                self._deliver(p, row)
            case "view":
                membership.change_membership(run, limits, p, row)
                views.install(run, limits, p, row)
            case "join" | "leave":
                membership.change_membership(run, limits, p, row)
            case "crash":
                p.crashed = True
                recheck(run)
            case "lost":
                self._lost(p)
            case "end":
                return self._end(p)
        return []

    def _send(self, p: Process, row: HeldRow) -> list[Process]:
        run = self.state
        m = run.message(row.message)
        if (m is not None and m.sender != NOBODY) or row.message in run.forgotten:
            tell(
                run, self.limits, "wellformed", ("sent twice", row.message),
                f"{row.message} was sent more than once.",
                {"message": row.message, "processes": [p.name]},
            )  # fmt: skip
            return []
        if m is None:
            m = run.new_message(row.message)
        else:
            self._sent_after_all(m)
        self._number(p, m, row)
        run.upcoming.pop(m.id, None)
        woken = [run.processes[n] for n in run.waiting.pop(m.id, ())]
        for q in woken:
            q.blocked_ms = -1
        return woken

    def _sent_after_all(self, m: Message) -> None:
        self.state.doubt("sends read after a delivery had been judged without them")
        withdraw(
            self.state,
            lambda f: f.by_end_of >= 0 and f.witness.get("message") == m.id,
            "its send was read",
        )
        m.said = {}

    def _number(self, p: Process, m: Message, row: HeldRow) -> None:
        g = self.state.group(row.group)
        m.sender, m.at, m.group = p.number, p.position, g.number
        stay = p.stays.get(g.number)
        change = membership.last_change(stay, p.position)
        if change is not None and change.inside:
            m.view = change.current
        m.clock = predecessors.stamp(p, EVERYTHING)
        if "causal.group" in self.state.checks:
            m.group_clock = predecessors.stamp(p, g.number)
        for scope in (EVERYTHING, g.number):
            trail = p.sent.get(scope)
            if trail is None:
                trail = p.sent[scope] = Trail()
            trail.add(p.position, m.number)

    def _deliver(self, q: Process, row: HeldRow) -> None:
        run = self.state
        m = run.message(row.message)
        if row.message in q.forgotten if m is None else q.number in m.got:
            tell(
                run, self.limits, "no_duplication", (q.name, row.message),
                f"{q.name} delivered {row.message} more than once.",
                {"process": q.name, "message": row.message},
            )  # fmt: skip
            return
        if m is None and row.message in run.forgotten:
            run.doubt("deliveries of messages that were forgotten")
            q.forgotten.add(row.message)
            views.deliver_unknown(run, q, row.group)
            return
        if m is None or m.sender == NOBODY:
            m = self._deliver_unsent(q, row, m or run.new_message(row.message))
        else:
            self._deliver_sent(q, row, m)
        pairs.deliver(run, self.limits, q, m)
        cycles.deliver(run, self.limits, q, m)
        m.got[q.number] = q.position
        if m.group != NOBODY and "total.gapless" in run.checks:
            trail = q.delivered.get(m.group)
            if trail is None:
                trail = q.delivered[m.group] = Trail()
            trail.add(q.position, m.number)

    def _deliver_unsent(self, q: Process, row: HeldRow, m: Message) -> Message:
        views.deliver_unknown(self.state, q, row.group)
        m.said[q.number] = row.sender or ""
        if self._was_never_sent(row):
            self._tell_never_sent(q, m)
        return m

    def _tell_never_sent(self, q: Process, m: Message) -> None:
        sender = m.said[q.number]
        tell(
            self.state, self.limits, "no_creation", (q.name, m.id),
            f"{q.name} delivered {m.id}, of which there is no send.",
            {"process": q.name, "message": m.id, "sender": sender},
            by_end_of=self.state.process_numbers[sender],
        )  # fmt: skip

    def _deliver_sent(self, q: Process, row: HeldRow, m: Message) -> None:
        run, limits = self.state, self.limits
        g = run.groups[m.group]
        if row.group != g.name:
            tell(
                run, limits, "no_creation", (q.name, m.id, "group"),
                f"{q.name} delivered {m.id} in {row.group}; it was sent to {g.name}.",
                {"process": q.name, "message": m.id, "delivered_in": row.group,
                 "sent_to": g.name},
            )  # fmt: skip
        membership.delivered_in(run, limits, q, m.group, m.id)
        if membership.is_member(run, q, m.group, q.position) is False:
            membership.not_a_member(run, limits, q, g, m.id)
        views.deliver(run, limits, q, m)
        predecessors.deliver(run, limits, q, m)
        memory.arrived(run, q, m)

    def _lost(self, p: Process) -> None:
        p.lost = True
        run = self.state
        why = f"records of {p.name} are missing"
        withdraw(run, lambda f: f.gap is not None and f.gap.process == p.number, why)
        withdraw(run, lambda f: f.by_end_of == p.number, why)
        withdraw(
            run,
            lambda f: (
                f.property == "vsync"
                and any(all(run.processes[n].lost for n in one) for one in f.observers)
            ),
            why,
        )

    def _end(self, p: Process) -> list[Process]:
        p.ended = True
        run = self.state
        if p.noted:
            recheck(run)
        if not self._is_complete(p):
            return []
        for m in run.messages.values():
            if m.sender == NOBODY and m.id not in run.upcoming:
                for number, sender in m.said.items():
                    if sender == p.name:
                        self._tell_never_sent(run.processes[number], m)
        freed = [q for q in self._blocked() if self._was_never_sent(q.held[0])]
        for q in freed:
            self._unblock(q)
        return freed
