"""One trial: a copy of a node is told lies by one liar, between the honest events that followed.

What must hold after each step:

    nothing is raised       a lie is at worst a fault of its sender
    invariants              of the node hold
    no other is blamed      for a lie, nobody but its sender
    it takes no time        less than a second of CPU
    it takes no room        a packet does not make the node large, nor make it say very much
    it can be sent          whatever the node answers

A script is plain data, so that a finding can be made shorter: steps are left out while the same
place still fails.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import msgspec

from fuzz.lies import MAX_ERA, Liar
from fuzz.moments import Moment
from ordercast.core.events import Receive, Timer
from ordercast.core.output import Output
from ordercast.membership.agreement_headers import InstallView
from ordercast.membership.news import Dissolved
from ordercast.process.commands import Broken
from ordercast.process.process import CLUSTER_GROUP, Process
from ordercast.reliability.link import Linked

SECONDS = 1.0  # of CPU, for one step
MANY = 2000  # packets, deliveries or timers of one step
LARGE = 200_000  # bytes by which a node may grow in a trial, beside what it was given
LIES = (2, 4, 8, 16, 24)
HONEST = 4  # steps of honest events, at most
SILENCES = 0.3  # of trials end with nodes that fall silent
TIMERS = 4  # that the copy asked for, and that ring at the end
CERTAIN = ("traffic", "after a crash", "entering a group", "group change", "moving")
"""Of a node that is in the cluster and does not leave."""
SOURCES = f"{Path('src') / 'ordercast'}"

_encode = msgspec.msgpack.Encoder().encode


class Step(msgspec.Struct, frozen=True):
    """What is handed to the copy at once."""

    events: tuple[Any, ...]
    is_lie: bool


class Failure(msgspec.Struct, frozen=True):
    """What did not hold."""

    kind: str  # raised, invariant, blame, time, room, unsendable; "later" if an honest event did it
    place: str  # file:line
    function: str
    says: str

    @property
    def where(self) -> tuple[str, str, str]:
        """The same fault again, however its text is."""
        return self.kind, self.place, self.function


class Tally(msgspec.Struct):
    """What was done in trials."""

    frames: int = 0
    refused: int = 0  # by the decoder
    faults: int = 0  # recorded against the liar
    ended: Counter[str] = msgspec.field(default_factory=Counter)  # nodes, by the kind of liar
    doubted: Counter[str] = msgspec.field(default_factory=Counter)  # honest nodes, later: why


class Slow(BaseException):
    """A step takes too long. No handler of a machine may catch it."""


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise Slow


@contextmanager
def patience() -> Iterator[None]:
    """Within this, steps that take too long are interrupted."""
    before = signal.signal(signal.SIGPROF, _interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# -- scripts --------------------------------------------------------------------------------------


def script_of(liar: Liar, rng: Random) -> list[Step]:
    """Lies and honest events, mixed; something honest comes last."""
    lies = [lie for _ in range(rng.choice(LIES)) if (lie := liar.lie()) is not None]
    steps = [Step((lie,), True) for lie in lies]
    at = 0
    for batch in liar.moment.following[:HONEST]:
        at = rng.randint(at, len(steps))
        steps.insert(at, Step(batch, False))
        at += 1
    if steps and steps[-1].is_lie:
        steps += [Step(batch, False) for batch in liar.moment.following[HONEST:][:2]]
    if rng.random() < SILENCES:
        steps += _silence(liar, rng)
    return steps


def _silence(liar: Liar, rng: Random) -> list[Step]:
    """Connections break, and time passes: what was put off is looked at again."""
    process = liar.process
    others = [p for p in process.pids if p != process.me]
    lost = rng.sample(others, min(len(others), rng.choice((1, 1, 2, 9))))
    ticks = [Timer(CLUSTER_GROUP, "tick")] * rng.choice((1, 4, 12))
    return [Step((event,), False) for event in (*map(Broken, lost), *ticks)]


def header_of(step: Step) -> str:
    """The kind of the packet that lied."""
    header = step.events[0].header
    inner = header.header if isinstance(header, Linked) else header
    return type(inner).__name__


# -- performing -----------------------------------------------------------------------------------


def perform(
    moment: Moment, steps: list[Step], liar: Liar, tally: Tally, *, weigh: bool = True
) -> Failure | None:
    """Hand the steps to a fresh copy; the first thing that does not hold."""
    process = moment.process()
    timers: dict[tuple[int, str], None] = {}
    given = 0
    for step in steps:
        failure = _take(process, step, liar, tally)
        if failure is not None:
            return failure
        out = process.out
        given += sum(len(e.payload) for e in step.events if type(e) is Receive)
        if step.is_lie:
            tally.frames += 1
            timers |= dict.fromkeys((g, name) for g, name, ms in out.timers if ms >= 0)
        if process.over:
            tally.ended[liar.kind if step.is_lie else "later"] += 1
            if step.is_lie and _must_go_on(process, moment, liar, step):
                return Failure("ended", "-", "-", f"{liar.kind}: {out.news}"[:300])
            return None
    for g, name in list(timers)[:TIMERS]:
        failure = _take(process, Step((Timer(g, name),), False), liar, tally)
        if failure is not None:
            return failure
    return _room(process, moment, given) if weigh else None


def _must_go_on(process: Process, moment: Moment, liar: Liar, step: Step) -> bool:
    """No other than the coordinator can end a node that is in. A side of a partition that has
    offered to go over to another one ends if that one lets it come. A node that really went on
    without this one, and said so, may say it again."""
    offered = any(isinstance(news, Dissolved) for news in process.out.news)
    certain = liar.kind != "coordinator" and moment.state in CERTAIN and not offered
    return certain and not _was_said(moment, liar, step)


def _was_said(moment: Moment, liar: Liar, step: Step) -> bool:
    """Had this view been claimed by the same node before, when it told the truth?"""
    claim = moment.process().agreement.claims.of.get(liar.pid)
    header = step.events[0].header
    inner = header.header if isinstance(header, Linked) else header
    return claim is not None and isinstance(inner, InstallView) and inner.next == claim.view


def _take(process: Process, step: Step, liar: Liar, tally: Tally) -> Failure | None:
    later = "" if step.is_lie else " later"
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    kind = "raised"
    try:
        out = process.step(step.events)
        kind = "unsendable"
        _check_sendable(out)
        kind = "invariant"
        process.invariants()
    except Slow as slow:
        return failure_of("time" + later, slow, f"more than {SECONDS} s in {kind}")
    except (Exception, RecursionError) as error:
        return failure_of(kind + later, error, repr(error)[:300])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    for p, why in out.faults:
        if p == liar.pid:
            tally.faults += 1
        elif step.is_lie:
            return Failure("blame", "-", "-", f"process {p}: {why}")
        else:
            tally.doubted[f"{liar.kind}: {why}"[:60]] += 1
    if max(len(out.transmits), len(out.deliveries), len(out.timers), len(out.notes)) > MANY:
        return Failure("room" + later, "-", "-", f"{len(out.transmits)} packets in one step")
    return None


def _check_sendable(out: Output) -> None:
    """Whatever the node says, the wire can carry."""
    for _, g, era, header, _ in out.transmits:
        if not 0 <= era <= MAX_ERA or g > MAX_ERA:
            raise OverflowError(f"{type(header).__name__} of group {g} in era {era}")
        _encode(header)


def _room(process: Process, moment: Moment, given: int) -> Failure | None:
    grown = len(pickle.dumps(process, 5)) - len(moment.node) - 4 * given
    if grown > LARGE:
        return Failure("room", "-", "-", f"the node has grown by {grown} bytes")
    return None


def failure_of(kind: str, error: BaseException, says: str) -> Failure:
    """With the innermost place of ours that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if SOURCES in frame.filename]
    if not ours:
        return Failure(kind, "-", "-", says)
    last = ours[-1]
    file = last.filename.partition(SOURCES + "/")[2]
    return Failure(kind, f"{file}:{last.lineno}", last.name, says)


# -- the shortest witness -------------------------------------------------------------------------


def shortest(moment: Moment, steps: list[Step], liar: Liar, failure: Failure) -> list[Step]:
    """As few steps as still fail there, one left out after the other."""
    kept = list(steps)
    for step in reversed(steps):
        fewer = [other for other in kept if other is not step]
        again = perform(moment, fewer, liar, Tally())
        if again is not None and again.where == failure.where:
            kept = fewer
    return kept
