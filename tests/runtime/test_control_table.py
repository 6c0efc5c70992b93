"""Who may say what on channel 0: every message, from everybody who may not say it, at one node.

No connection is made: a node in a view of three is told things on connections that are none.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import ordercast as oc
from fuzz.mutate import Seen, drawn
from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId
from ordercast.runtime import control, control_table
from ordercast.runtime.cluster_membership import MAX_UNTIMELY
from ordercast.runtime.control import CONTROLS, Control
from ordercast.runtime.control_table import (
    ANYBODY,
    CONTROL_RULES,
    EVERYWHERE,
    NOBODY,
    PLACES,
    RULE_OF,
    Rule,
    Speaker,
    Standing,
    Verdict,
)
from ordercast.runtime.presence import Presence
from ordercast.runtime.state_seeking import Seeking
from ordercast.wire.control import Hello
from ordercast.wire.frame import Splitter

BOSS, ME, BOB, NEWCOMER, GONE = 5, 0, 6, 8, 9
TRUE = dict(RULE_OF)
"""as the table is; some tests change it"""
PIDS: dict[Speaker, ProcessId | None] = {
    Speaker.COORDINATOR: BOSS,
    Speaker.NODE: BOB,
    Speaker.NEWCOMER: NEWCOMER,
    Speaker.GONE: GONE,
    Speaker.ASKED: None,
    Speaker.STRANGER: None,
}


class Wire:
    """A connection that is none: what the node says on it is kept."""

    def __init__(self, name: str) -> None:
        self.hello = Hello(cluster="ordercast", name=name, incarnation=1, advertise="127.0.0.1:9")
        self.peer = ("127.0.0.1", 9)
        self.accepted = False
        self.said: list[bytes] = []

    def send(self, packet: bytes) -> None:
        self.said.append(packet)

    def close(self, reason: str) -> None:
        """It stays, so that everything is looked at."""

    abort = close

    def take_large_frames(self) -> None:
        """There are none."""


class Listener:
    """Port 9 of nowhere."""

    def __init__(self, presence: Presence) -> None:
        self.hello = presence.peers.hello
        self.address = ("127.0.0.1", 9)
        self.places = SimpleNamespace(reserve=lambda hosts: None)

    def close(self) -> None:
        """It was never open."""


class Scene:
    """A node that is in a view and does not coordinate, and one speaker of every kind."""

    def __init__(self, presence: Presence) -> None:
        self.presence = presence
        self.taken: list[Control] = []
        self.wires = {speaker: Wire(str(speaker.name).lower()) for speaker in Speaker}
        nodes = tuple(NodeEntry(p, name, 1) for p, name in ((BOSS, "boss"), (BOB, "bob")))
        for node in (*nodes, NodeEntry(GONE, "gone", 1)):
            presence.directory.meet(node)
        presence.directory.remove(GONE)
        view = NodeView(ViewId(0, 0, 2), (nodes[0], presence.me, nodes[1]), (BOSS, ME, BOB), 2)
        presence.engine.stack.agreement.view = view
        presence.coordination.expect(NodeEntry(NEWCOMER, "newcomer", 1, "127.0.0.1:9"))
        asked = self.wires[Speaker.ASKED]
        welcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        presence.peers._awaited[str(asked.hello.identity)] = (7, welcome)

    def say(self, speaker: Speaker, message: Control) -> Verdict:
        """What becomes of it, as far as it can be seen from outside."""
        presence, before = self.presence, len(self.taken)
        frame = Splitter(1 << 26).feed(control.encode(message))[0]
        kept = len(presence.cluster_membership._untimely)
        is_fault = False
        try:
            presence.on_control(self.wires[speaker], PIDS[speaker], frame)  # type: ignore[arg-type]
        except PeerError:
            is_fault = True
        if len(self.taken) > before:  # and it may be a fault for what it says
            return Verdict.TAKEN
        if is_fault:
            return Verdict.REFUSED
        return (
            Verdict.KEPT if len(presence.cluster_membership._untimely) > kept else Verdict.DROPPED
        )

    def print(self) -> object:
        """All that a message might change here, but for the words that are kept."""
        presence = self.presence
        return (
            presence.engine.stack.agreement.fingerprint(),
            presence.engine.stack.changes.fingerprint(),
            repr(vars(presence.directory)),
            sorted(presence.coordination._expected),
            sorted(presence.peers.bound),
            repr(presence.states._sought),
            presence.states.stats(),
            repr(presence.slow_readers._told),
            presence.pulses.stats(),
            presence.administration.wishes,
            [wire.said[:] for wire in self.wires.values()],
        )


@asynccontextmanager
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    presence = oc.Node("alice", bootstrap=True)._new_presence()
    presence.peers._listener = Listener(presence)  # type: ignore[assignment]
    presence.found("alice", "run")
    made = Scene(presence)
    hand_over = presence._hand_over

    def note(*args: Any) -> None:
        made.taken.append(args[2])
        hand_over(*args)

    monkeypatch.setattr(presence, "_hand_over", note)
    try:
        yield made
    finally:
        presence.stop(oc.GroupClosed("the test is over"))


def some(kind: type[Control]) -> Control:
    """A message of this kind, the same every time."""
    seen = Seen()
    for value in (NodeEntry(11, "eve", 1, "127.0.0.1:9"), 1, "eve", "127.0.0.1:9"):
        seen.note(value)
    message = drawn(kind, seen, random.Random(kind.__name__))
    assert isinstance(message, Control)
    return message


def cases(kind: type[Control]) -> Iterator[Speaker]:
    """Who may not say this to a node that is in."""
    rule = TRUE[kind]
    allowed = rule.may_say if rule.at & Standing.IN else NOBODY
    yield from (speaker for speaker in Speaker if not speaker & allowed)


async def failures(monkeypatch: pytest.MonkeyPatch, kind: type[Control]) -> list[str]:
    """Of this message: every speaker that may not say it and is heard, and what it changes."""
    found = []
    async with scene(monkeypatch) as it:
        for speaker in cases(kind):
            before, message = it.print(), some(kind)
            verdict = it.say(speaker, message)
            if verdict is not _expected(TRUE[kind], speaker):
                found.append(f"{message} of a {speaker.name} is {verdict.value}")
            elif it.print() != before:
                found.append(
                    f"{message} of a {speaker.name} is {verdict.value}, and does something"
                )
    return found


def _expected(rule: Rule, speaker: Speaker) -> Verdict:
    if speaker & rule.dropped:
        return Verdict.DROPPED
    return Verdict.KEPT if speaker & rule.kept else Verdict.REFUSED


@pytest.mark.parametrize("kind", CONTROLS, ids=lambda kind: kind.__name__)
async def test_whoever_may_not_say_it_is_not_heard(
    monkeypatch: pytest.MonkeyPatch, kind: type[Control]
) -> None:
    assert await failures(monkeypatch, kind) == []


@pytest.mark.parametrize(
    "rule",
    [rule for rule in CONTROL_RULES if rule.may_say != ANYBODY],
    ids=lambda rule: rule.messages[0].__name__,
)
async def test_a_rule_that_is_loosened_is_noticed(
    monkeypatch: pytest.MonkeyPatch, packet_errors: list[Any], rule: Rule
) -> None:
    loose = msgspec.structs.replace(rule, may_say=ANYBODY, at=EVERYWHERE)
    for kind in rule.messages:
        with monkeypatch.context() as patched:
            patched.setitem(RULE_OF, kind, loose)
            assert await failures(monkeypatch, kind), f"nobody tests who may say {kind.__name__}"


def test_every_message_has_one_rule() -> None:
    named = [kind for rule in CONTROL_RULES for kind in rule.messages]
    assert sorted(named, key=str) == sorted(CONTROLS, key=str)
    assert all(rule.at in PLACES for rule in CONTROL_RULES)


def test_what_no_rule_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(RULE_OF, control.Lost)
    lost = control.Lost(1, "it is bad")
    verdict = control_table.admit(lost, Standing.IN, Speaker.COORDINATOR)
    assert verdict is Verdict.REFUSED


async def test_a_word_that_came_too_early_counts_when_its_sender_coordinates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch) as it:
        eve = NodeEntry(11, "eve", 1, "127.0.0.1:9")
        assert it.say(Speaker.NODE, control.NodeUp(eve)) is Verdict.KEPT
        assert eve.pid not in it.presence.directory.live
        agreement = it.presence.engine.stack.agreement
        agreement.view = msgspec.structs.replace(agreement.view, voters=(BOB, ME))
        it.presence.cluster_membership._settle(succession=False)
        assert it.presence.directory.live[eve.pid] == eve


async def test_words_that_came_too_early_take_no_room_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch) as it:
        early = control.NodeUp(NodeEntry(11, "eve", 1, "127.0.0.1:9"))
        it.say(Speaker.NODE, early)
        for number in range(2 * MAX_UNTIMELY):
            it.say(Speaker.NEWCOMER, control.NodeDown(number, "gone"))
        kept = it.presence.cluster_membership._untimely
        assert len(kept) == MAX_UNTIMELY and kept[0] == (BOB, early)
        assert kept[-1] == (NEWCOMER, control.NodeDown(2 * MAX_UNTIMELY - 1, "gone"))


async def test_a_state_is_asked_only_of_nodes_of_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as it:
        peers = it.presence.peers
        wires = {p: Wire(str(p)) for p in (BOB, NEWCOMER)}
        peers.bound.update(wires)  # type: ignore[arg-type]
        seeking = Seeking(it.presence, "g")
        monkeypatch.setattr("ordercast.runtime.state_seeking.ANSWER_S", 0)
        asyncio.get_running_loop().call_soon(seeking.offered, NEWCOMER, 0)
        asyncio.get_running_loop().call_soon(seeking.offered, BOB, 1)
        await seeking.announce()
        wanted = control.encode(control.StateWanted(1, "g", 0))
        assert wanted in wires[BOB].said and wanted not in wires[NEWCOMER].said
        peers.bound.clear()


async def test_an_answer_counts_only_of_whom_a_newcomer_has_asked() -> None:
    presence = oc.Node("alice", seeds=["127.0.0.1:9"])._new_presence()
    me = NodeEntry(1, "alice", 1)
    try:
        for message, role in (
            (control.Admitted(me, 0, (), "run"), "_admission"),
            (control.Refused("name", "it is taken"), "_admission"),
            (control.StatusReply(), "_founding"),
        ):
            setattr(presence, role, SimpleNamespace(asks=lambda conn: False))
            frame = Splitter(1 << 26).feed(control.encode(message))[0]
            with pytest.raises(PeerError, match="must not come from a process"):
                presence.on_control(Wire("x"), None, frame)  # type: ignore[arg-type]
            setattr(presence, role, None)
    finally:
        presence.stop(oc.GroupClosed("the test is over"))
