"""What a contact answers to a node on its way in, or back, ends no node."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import get_type_hints

import msgspec
import pytest

import ordercast as oc
from fuzz.contact import Answer, HostileContact
from ordercast.membership.node_view import NodeEntry
from ordercast.runtime import reentry
from ordercast.runtime.control import (
    SENTENCES,
    Admitted,
    Apply,
    Control,
    NodeUp,
    PulseKey,
    Redirect,
    Refused,
    StatusReply,
    StatusRequest,
    decode,
    encode,
)
from ordercast.runtime.presence import Presence
from ordercast.runtime.reentry import why_no_seed
from ordercast.wire.control import Hello
from ordercast.wire.frame import Splitter

JUNK = ("", "nonsense", "host:99999", "h:" + "9" * 5000, "\x1b]0;x\x07:80", ":1", "x" * 4000 + ":1")
UNRESOLVED = ("..:80", "x" * 200 + ":80", "192.0.2.1:9")

Warnings = pytest.LogCaptureFixture


def redirects(to: str | None) -> Answer:
    """None: to itself."""

    def answer(contact: HostileContact, question: Control, _: Hello) -> Control | None:
        leader = contact.address if to is None else to
        return Redirect(leader) if isinstance(question, Apply) else None

    return answer


def admits(**lies: object) -> Answer:
    """Lets everybody in, with something wrong in it."""

    def answer(contact: HostileContact, question: Control, hello: Hello) -> Control | None:
        if not isinstance(question, Apply):
            return None
        evil = NodeEntry(0, "evil", 1, contact.address)
        me = NodeEntry(1, hello.name, question.after + 1, hello.advertise)
        true = Admitted(me, 0, (evil,), "run")
        return msgspec.structs.replace(true, **{k: _lie(v, me, evil) for k, v in lies.items()})

    return answer


def _lie(lie: object, me: NodeEntry, evil: NodeEntry) -> object:
    return lie(me, evil) if callable(lie) else lie


def says(message: Control) -> Answer:
    def answer(_: HostileContact, question: Control, hello: Hello) -> Control | None:
        return message if isinstance(question, Apply) else None

    return answer


def other(node: NodeEntry, **changes: object) -> NodeEntry:
    return msgspec.structs.replace(node, **changes)


LIES: dict[str, Answer] = {
    **{f"redirect to junk {n}": redirects(junk) for n, junk in enumerate(JUNK)},
    "redirect to itself": redirects(None),
    "admitted by nobody": admits(leader=7),
    "admitted as another": admits(me=lambda me, _: other(me, name="somebody")),
    "admitted as itself": admits(me=lambda me, _: other(me, pid=0)),
    "admitted below zero": admits(me=lambda me, _: other(me, pid=-5)),
    "admitted as a former life": admits(me=lambda me, _: other(me, incarnation=0)),
    "admitted as a life too far": admits(me=lambda me, _: other(me, incarnation=2**62)),
    "admitted elsewhere": admits(me=lambda me, _: other(me, address="junk")),
    "a node at no address": admits(nodes=lambda _, e: (e, NodeEntry(2, "x", 1, "junk"))),
    "a node without a name": admits(nodes=lambda _, e: (e, NodeEntry(2, "", 1, "127.0.0.1:9"))),
    "a node twice": admits(nodes=lambda _, e: (e, other(e, name="x"))),
    "a node of no number": admits(nodes=lambda _, e: (e, NodeEntry(2**40, "x", 1, "h:9"))),
    "a run with commands": admits(run="\x1b[2J"),
    "a past with no names": admits(past=(("", 1),)),
    "a past too far": admits(past=(("x", 2**62),)),
    "a floor too far": admits(floor=2**62),
    "a node up": says(NodeUp(NodeEntry(1, "x", 1, "junk"))),
    "a key": says(PulseKey(2**40, b"")),
    "a status": says(StatusReply()),
}  # fmt: skip

PASSES: dict[str, Answer] = {  # may be said by one that is wrong, and is no fault
    **{f"redirect to nobody {n}": redirects(place) for n, place in enumerate(UNRESOLVED)},
    "refused for its name": says(Refused("name", "taken")),
    "refused for no reason": says(Refused("\x1b", "\x1b[2J")),
    "refused for now": says(Refused("joining", "ask again")),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_newcomer_that_meets_a_liar_goes_on_to_the_next_seed(
    lie: str, caplog: Warnings
) -> None:
    async with oc.Node("alice", bootstrap=True) as alice, HostileContact(LIES[lie]) as evil:
        async with oc.Node("bob", seeds=[evil.address, alice.address]) as bob:
            assert bob.stats()["node_view"]["members"] == ["alice#1", "bob#1"]
            assert bob.stats()["peer_faults"] == 1
        assert evil.asked == 1
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(told) == 1 and told[0].startswith(f"evil#1 at {evil.address} broke the protocol: ")
    assert told[0].isprintable() and len(told[0]) < 600


@pytest.mark.parametrize("word", PASSES)
async def test_a_newcomer_that_is_sent_away_goes_on_to_the_next_seed(word: str) -> None:
    async with oc.Node("alice", bootstrap=True) as alice, HostileContact(PASSES[word]) as evil:
        async with oc.Node("bob", seeds=[evil.address, alice.address]) as bob:
            assert bob.stats()["node_view"]["members"] == ["alice#1", "bob#1"]
        assert evil.asked == 1


async def test_who_is_refused_by_all_seeds_that_answer_is_told_so() -> None:
    refuses = says(Refused("name", "it is taken"))
    async with HostileContact(refuses) as one, HostileContact(refuses) as two:
        with pytest.raises(oc.NameTaken, match="it is taken"):
            await oc.Node("bob", seeds=[one.address, two.address]).start()
        assert (one.asked, two.asked) == (1, 1)


TERMINAL = "\x1b]0;PWNED\x07\x1b[2J\x9b2J\nWARNING all is well " + "x" * 50_000


@pytest.mark.parametrize(
    ("reason", "error"),
    [("name", oc.NameTaken), ("config", oc.ConfigError), ("?\x1b[2J", oc.UsageError),
     ("joining", oc.JoinTimeout)],
)  # fmt: skip
async def test_an_error_that_quotes_a_peer_moves_no_terminal_and_begins_no_line(
    reason: str, error: type[oc.OrdercastError]
) -> None:
    async with HostileContact(says(Refused(reason, TERMINAL))) as evil:
        with pytest.raises(error) as raised:
            await oc.Node("bob", seeds=[evil.address], join_timeout=0.3).start()
    told = str(raised.value)
    assert told.isprintable() and len(told) < 6000
    assert "\\x1b]0;PWNED\\x07\\x1b[2J\\x9b2J\\nWARNING all is well xxx" in told


@pytest.mark.parametrize("kind", [kind for kind, fields in SENTENCES.items() if fields])
def test_every_sentence_of_a_control_message_is_printable_when_it_is_read(
    kind: type[Control],
) -> None:
    """Whatever errors and logs will quote; what is no sentence comes as it was said."""
    plain = {str: "\x1b[2J", int: 7}
    fields = {name: plain[type_] for name, type_ in get_type_hints(kind).items()}
    [frame] = Splitter(100_000).feed(encode(kind(**fields)))
    message = decode(frame)
    for name, value in fields.items():
        said = "\\x1b[2J" if name in SENTENCES[kind] else value
        assert getattr(message, name) == said


async def test_seeds_that_send_a_newcomer_round_in_circles_cost_it_its_patience_only() -> None:
    places: list[str] = []

    def on(_: HostileContact, question: Control, hello: Hello) -> Control | None:
        return Redirect(places[0]) if isinstance(question, Apply) else None

    async with HostileContact(on) as one, HostileContact(redirects(None)) as two:
        places.append(two.address)
        with pytest.raises(oc.JoinTimeout):
            await oc.Node("bob", seeds=[one.address], join_timeout=0.3).start()


@pytest.mark.parametrize("lie", ["redirect to junk 1", "admitted elsewhere", "a node up"])
async def test_a_node_on_its_way_back_is_not_kept_out_by_a_liar_that_always_answers_first(
    lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    answers = 0

    async def liar_first(presence: Presence, address: str) -> str | None:
        nonlocal answers
        calls[address] += 1
        if address == evil.address:
            found = await why_no_seed(presence, address)
            answers += 1
            return found
        while answers < calls[address]:
            await asyncio.sleep(0.001)
        return await why_no_seed(presence, address)

    monkeypatch.setattr(reentry, "why_no_seed", liar_first)
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        HostileContact(LIES[lie]) as evil,
        oc.Node("carol", seeds=[alice.address]),
        oc.Node("bob", seeds=[alice.address, evil.address]) as bob,
    ):
        group = await bob.join("g", order="total")
        alice._presence.peers.bound[bob._presence.me.pid].abort("the cable was cut")
        with pytest.raises(oc.Excluded):
            async for _ in bob:
                pass
        while bob.incarnation != 2 or bob.stats()["out_reason"]:
            await asyncio.sleep(0.01)
        assert group.members == ("bob",) and evil.asked


STATUSES = {
    "nothing": b"",
    "no JSON": b"\xff\xfe",
    "deep": b'{"state":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a list": b"[]",
    "a state that is a list": b'{"state":["running"]}',
}


@pytest.mark.parametrize("status", STATUSES)
async def test_a_node_that_would_start_the_cluster_asks_a_liar(status: str) -> None:
    """Nobody can say what runs there, so it does not start a second cluster, and says so."""

    def answer(_: HostileContact, question: Control, hello: Hello) -> bytes | None:
        if isinstance(question, StatusRequest):
            return encode(StatusReply(), STATUSES[status])
        return None

    async with HostileContact(answer) as evil:
        with pytest.raises(oc.JoinTimeout, match=r"did not say whether it runs"):
            await oc.Node("bob", bootstrap=True, seeds=[evil.address]).start()
