"""Control messages that are well formed and wrong, told to live nodes in each of their roles.

The machines are fuzzed in simulated runs (`fuzz.campaign`); what nodes say to each other beside
them is read by the runtime, which only lives in an event loop. So real nodes run here, and every
kind of control message is said to them: with its fields drawn from their types, from what is true
of the cluster, and from extremes. What is said follows from the seed; when it arrives does not.

coordinator, member    hear a member, one that was let in and does not come, and a stranger
founding               a node that asks its seeds before it starts a cluster
applicant, returning   a node that asks to be let in, for the first time or again
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import ordercast as oc
from fuzz.contact import HostileContact
from fuzz.mutate import Seen, drawn, mutated
from ordercast.core.ids import ProcessId
from ordercast.errors import JoinTimeout, OrdercastError, PeerError
from ordercast.membership.node_view import NodeEntry
from ordercast.runtime.closing import drop_presence
from ordercast.runtime.control import (
    CONTROLS,
    Admitted,
    Apply,
    Control,
    Enter,
    Redirect,
    Refused,
    StatusReply,
    StatusRequest,
    encode,
)
from ordercast.runtime.lifetime import Lifetime
from ordercast.runtime.options import NodeOptions
from ordercast.runtime.presence import Presence
from ordercast.runtime.query_client import QueryClient
from ordercast.transport.tcp import Connection, connect
from ordercast.wire.control import Hello
from ordercast.wire.frame import Splitter

PATIENCE_S = 60.0  # a guard against hanging
SUSPECT_MS = 20_000  # a busy machine is no finding
PAYLOADS = (b"", b"x", b"{}", b'{"state":"running"}', b'{"state":[]}', b"[" * 5000, b"\xff" * 70)
JOIN_S = 0.2  # that a node on its way in has, since nobody lets it in
INSIDE = 4  # times that a node of the cluster hears a kind of message in a round: that is quick
MORE = 3  # messages behind each answer to an applicant
SPEAKERS = ("member", "applicant", "stranger")


class ControlBook:
    """What was said, whose fault it was, and what went wrong."""

    def __init__(self) -> None:
        self.said: Counter[tuple[str, str]] = Counter()  # by role and kind of message
        self.faults: Counter[str] = Counter()  # by who spoke
        self.failures: list[str] = []

    def roles(self) -> dict[str, int]:
        """Messages by role."""
        counts: Counter[str] = Counter()
        for (role, _), count in self.said.items():
            counts[role] += count
        return dict(counts)


async def control_campaign(seed: int, rounds: int) -> ControlBook:
    """Every kind of message to each role and from each kind of speaker, again and again."""
    book, loop = ControlBook(), asyncio.get_running_loop()
    before = loop.get_exception_handler()

    def note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        book.failures.append(f"in the loop: {context['message']}: {context.get('exception')!r}")

    loop.set_exception_handler(note)
    try:
        async with asyncio.timeout(PATIENCE_S * max(1, rounds)):
            await _fuzz_cluster(book, Random(f"cluster {seed}"), rounds)
            await _fuzz_founding(book, Random(f"founding {seed}"), rounds)
            await _fuzz_entrance(book, Random(f"entrance {seed}"), rounds)
        gc.collect()  # a task whose error nobody took says so when it goes
    finally:
        loop.set_exception_handler(before)
    return book


# -- nodes of a cluster ---------------------------------------------------------------------------


async def _fuzz_cluster(book: ControlBook, rng: Random, rounds: int) -> None:
    async with (
        oc.Node("alice", bootstrap=True, suspect_ms=SUSPECT_MS) as alice,
        oc.Node("bob", seeds=[alice.address], suspect_ms=SUSPECT_MS) as bob,
        oc.Node(
            "evil", seeds=[alice.address], suspect_ms=SUSPECT_MS, rejoin=False, close_timeout=0.1
        ) as evil,
    ):
        honest = {"coordinator": alice, "member": bob}
        groups = [await node.join("g", order="total") for node in honest.values()]
        seen = _true_of(alice)
        ears = [_Ear(book, role, node, evil._presence.me.pid) for role, node in honest.items()]
        _deafen(evil)
        for kind in [kind for kind in CONTROLS for _ in range(INSIDE * rounds)]:
            for ear in ears:
                for speaker in SPEAKERS:
                    await ear.hear(speaker, _made(kind, seen, rng), rng.choice(PAYLOADS))
            await asyncio.sleep(0)
        await groups[0].multicast(b"afterwards")
        for node in honest.values():
            await _read(node, b"afterwards")
        async with oc.Node("newcomer", seeds=[node.address for node in honest.values()]):
            pass
        for ear in ears:
            ear.judge()


class _Ear:
    """One honest node, and those who speak to it."""

    def __init__(self, book: ControlBook, role: str, node: oc.Node, evil: ProcessId) -> None:
        self._book, self._role, self._node, self._evil = book, role, node, evil
        self._presence = node._presence
        self._met = 0
        self._callers: dict[str, Connection] = {}  # this side of the connections to others
        self._theirs: list[Connection] = []
        # Whoever is at fault stays connected, so that every one of its messages is looked at.
        vars(self._presence.peers)["fault"] = self._fault

    def _fault(self, pid: ProcessId, reason: str) -> None:
        self._book.faults[self._presence.directory.names.get(pid, str(pid))] += 1

    async def hear(self, speaker: str, message: Control, payload: bytes) -> None:
        """What it brings out must be at worst the fault of who said it."""
        conn = await self._connection(speaker)
        assert conn.hello is not None
        [frame] = Splitter(1 << 26).feed(encode(message, payload))
        self._book.said[self._role, type(message).__name__] += 1
        errors = self._presence.packet_errors
        before = errors.count
        try:
            self._presence.peers.on_frames(conn, [frame])
        except PeerError:
            self._book.faults[conn.hello.name] += 1
        except Exception as error:
            self._fail(message, repr(error))
        if errors.count != before:
            self._fail(message, errors.last)

    def _fail(self, message: Control, why: str) -> None:
        self._book.failures.append(f"{self._role}: {why}: {message!r}"[:600])

    async def _connection(self, speaker: str) -> Connection:
        if speaker == "member":
            return self._presence.peers.bound[self._evil]
        conn = self._callers.get(speaker)
        if conn is None or conn.reason:
            conn = self._callers[speaker] = await self._call(speaker)
        return conn

    async def _call(self, speaker: str) -> Connection:
        self._met += 1
        name = f"{speaker}-{self._role}-{self._met}"
        host, _, port = self._node.address.rpartition(":")
        hello = Hello(cluster="ordercast", name=name, incarnation=0, advertise="127.0.0.1:9")
        self._theirs.append(await connect(host, int(port), hello=hello, handler=QueryClient()))
        peers = self._presence.peers
        conn = next(c for c in peers._unbound if c.hello is not None and c.hello.name == name)
        if speaker == "applicant" and self._role == "coordinator":
            [frame] = Splitter(1 << 26).feed(encode(Apply(NodeOptions().shared())))
            peers.on_frames(conn, [frame])
        return conn

    def judge(self) -> None:
        """It is the node that it was."""
        presence, stats = self._node._presence, self._node.stats()
        for conn in self._theirs:
            conn.abort("it is over")
        if presence is not self._presence or presence.error is not None:
            self._book.failures.append(f"{self._role}: it was out: {self._presence.error!r}")
        if stats["machine_failures"]:
            self._book.failures.append(f"{self._role}: its machine failed")


def _deafen(evil: oc.Node) -> None:
    """It takes nothing amiss: answers that it did not ask for are the answers to its lies."""
    peers = evil._presence.peers
    take = peers.on_control

    def on_control(conn: Connection, frame: Any) -> None:
        with suppress(PeerError):
            take(conn, frame)

    vars(peers)["on_control"] = on_control


async def _read(node: oc.Node, body: bytes) -> None:
    async for event in node:
        if isinstance(event, oc.Message) and event.body == body:
            return


# -- nodes on their way ---------------------------------------------------------------------------


async def _fuzz_founding(book: ControlBook, rng: Random, rounds: int) -> None:
    """It starts its cluster, or says why not: nothing else."""
    seen = _seen(NodeEntry(0, "evil", 1, "127.0.0.1:9"))

    def answer(_: HostileContact, question: Control, hello: Hello) -> bytes | None:
        if not isinstance(question, StatusRequest):
            return None
        words = [_made(kind, seen, rng) for kind in (rng.choice(CONTROLS), StatusReply)]
        for word in words:
            book.said["founding", type(word).__name__] += 1
        return b"".join(encode(word, rng.choice(PAYLOADS)) for word in words)

    async with HostileContact(answer) as evil:
        for _ in range(6 * rounds):
            node = oc.Node("node", bootstrap=True, seeds=[evil.address], join_timeout=JOIN_S)
            try:
                await node.start()
            except JoinTimeout:
                continue
            except Exception as error:
                book.failures.append(f"founding: {error!r}")
                continue
            await node.aclose()


async def _fuzz_entrance(book: ControlBook, rng: Random, rounds: int) -> None:
    """Whatever it is answered, it raises what `start` and the way back expect."""
    role, kind = "applicant", CONTROLS[0]

    def answer(contact: HostileContact, question: Control, hello: Hello) -> bytes | None:
        if not isinstance(question, Apply):
            return None
        them = NodeEntry(0, "evil", 1, contact.address)
        me = NodeEntry(1, hello.name, question.after + 1, hello.advertise)
        true = Admitted(me, 0, (them,), "run", (("x", 1),))
        seen = _seen(true, Redirect(contact.address), Refused("name", "taken"))
        first = mutated(true, seen, rng) if rng.random() < 0.5 else _made(kind, seen, rng)
        words = [first, *(_made(rng.choice(CONTROLS), seen, rng) for _ in range(MORE))]
        for word in words:
            book.said[role, type(word).__name__] += 1
        return b"".join(encode(word, rng.choice(PAYLOADS)) for word in words)

    async with HostileContact(answer, hangs_up=True) as evil:
        for next_kind in [kind for kind in CONTROLS for _ in range(rounds)]:
            kind, role = next_kind, rng.choice(("applicant", "returning"))
            await _follow(book, role, evil.address)


async def _follow(book: ControlBook, role: str, seed: str) -> None:
    """As a node does it that starts, or comes back."""
    hello = Hello(cluster="ordercast", name="node", incarnation=0)
    presence = Presence(
        hello, NodeOptions(join_timeout=JOIN_S), None, None, Lifetime(16, lambda _: None),
        after=int(role == "returning"),
    )  # fmt: skip
    await presence.peers.listen(("127.0.0.1", 0))
    try:
        await presence.follow((seed,), ask_seconds=JOIN_S / 2)
    except (OSError, OrdercastError):
        pass
    except Exception as error:
        book.failures.append(f"{role}: {error!r}")
    finally:
        if presence.packet_errors.count:
            book.failures.append(f"{role}: {presence.packet_errors.last}")
        if presence.peers.peer_faults:
            book.faults["evil"] += presence.peers.peer_faults
        await drop_presence(presence, "it is over")


# -- what is said ---------------------------------------------------------------------------------


def _made(kind: type[Control], seen: Seen, rng: Random) -> Control:
    """From its type alone, or from a true one."""
    known = seen.one(kind, rng)
    if known is not None and rng.random() < 0.7:
        message = mutated(known, seen, rng)
    else:
        others = Seen()  # else a true one would be drawn
        others.of.update({kept: seen.of[kept] for kept in seen.of if kept is not kind})
        message = drawn(kind, others, rng)
    assert isinstance(message, Control)
    return message


def _seen(*values: Any) -> Seen:
    seen = Seen()
    for value in values:
        seen.note(value)
    return seen


def _true_of(coordinator: oc.Node) -> Seen:
    presence = coordinator._presence
    nodes = tuple(presence.directory.live.values())
    entries = [row.entry for row in presence.engine.stack.rows.values()]
    return _seen(
        *entries, Apply(NodeOptions().shared()), Redirect(coordinator.address),
        Admitted(nodes[0], nodes[0].pid, nodes[1:], "run"), Enter(1, "g", "total", None),
        Refused("joining", "ask again"), *(node.identity for node in nodes),
    )  # fmt: skip
