"""One wrong packet of a member, or of somebody who only applied: the cluster goes on, for all.

Each packet comes from a node with valid credentials, to every other node at once. Afterwards the
honest nodes are those that they were, their group works, a new group can be made and a newcomer
comes in. What becomes of the sender is not asked: it may be excluded, or find itself unheard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest

import ordercast as oc
from ordercast.core.changing import NumbersEnd, NumbersHeld
from ordercast.core.ids import ProcessId
from ordercast.membership import agreement_headers as agreement
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId
from ordercast.protocols.sequencing import headers as sequencing
from ordercast.runtime import control
from ordercast.runtime.engine import CLUSTER
from ordercast.runtime.presence import Presence
from ordercast.views import headers as views
from ordercast.views.groups import GroupEntry
from ordercast.wire.control import CLUSTER_CHANNEL
from tests.strangers import Stranger

PATIENCE_S = 60
HUGE = 2**62
CLUSTERS_OWN = 2**32 - 2  # the number of the cluster's channel


class Scene:
    """Three honest nodes with a group of total order, and one that means ill."""

    def __init__(self, honest: list[oc.Node], evil: oc.Node) -> None:
        self.honest = honest
        self.evil = evil
        self.groups: list[oc.Group] = []
        self.seen: dict[str, list[oc.Message]] = {node.name: [] for node in honest}
        self.ended: list[str] = []

    async def read(self, node: oc.Node) -> None:
        """Until the test is over; an honest node that is out has lost."""
        try:
            async for event in node:
                if isinstance(event, oc.Message) and node.name in self.seen:
                    self.seen[node.name].append(event)
        except oc.NodeOut as error:
            if node is not self.evil:
                self.ended.append(f"{node.name}: {error!r}")

    # -- what the evil one knows ------------------------------------------------------------------

    @property
    def view(self) -> NodeView:
        view = self.evil._presence.engine.stack.node_view
        assert view is not None
        return view

    @property
    def me(self) -> ProcessId:
        return self.evil._presence.me.pid

    @property
    def row(self) -> views.Row:
        rows = self.evil._presence.engine.stack.rows.values()
        return next(row for row in rows if row.entry.name == "g")

    @property
    def others(self) -> tuple[ProcessId, ...]:
        return tuple(p for p in self.view.pids if p != self.me)

    @property
    def group(self) -> GroupEntry:
        return self.row.entry

    def entry(self, gid: int, **changes: object) -> GroupEntry:
        return msgspec.structs.replace(self.group, gid=gid, name=f"g{gid}", **changes)

    def change(self, row: views.Row, number: int = 1) -> views.Change:
        done = self.evil._presence.engine.stack.changes.done
        nexts = (views.Next(row, NumbersEnd(0, 0)),)
        return views.Change(done + number, (self.view.term, 99), nexts, self.view.pids)

    # -- what it says -----------------------------------------------------------------------------

    def say(self, header: msgspec.Struct) -> None:
        self.evil._presence.peers.transmit(self.others, self.packet(header))

    def packet(self, header: msgspec.Struct) -> bytes:
        """On the channel of the cluster, of the group, or of control."""
        if isinstance(header, control.Control):
            return control.encode(header)
        if type(header) in SEQUENCING:
            codec = self.evil._presence.engine._channels[self.group.gid]
            return codec.encode(self.group.gid, self.row.era, header, b"forged")
        return CLUSTER.encode(CLUSTER_CHANNEL, 0, header, b"")

    # -- what must be true afterwards -------------------------------------------------------------

    async def all_is_well(self) -> None:
        identities = {node.name: node.incarnation for node in self.honest}
        for group in self.groups:
            await group.multicast(b"afterwards")
        for node in self.honest:
            await self.until(lambda node=node: self.count(node.name) == len(self.groups))
        more = await self.honest[1].join("another", order="total")
        assert more.members == (self.honest[1].name,)
        seeds = [node.address for node in self.honest]
        async with oc.Node("newcomer", seeds=seeds, join_timeout=PATIENCE_S) as newcomer:
            members = newcomer.stats()["node_view"]["members"]
            assert {f"{node.name}#1" for node in self.honest} <= set(members)
        assert not self.ended and set(identities.values()) == {1}
        orders = {tuple((m.sender, m.body) for m in seen) for seen in self.seen.values()}
        assert len(orders) == 1
        assert not any(m.body == b"forged" for seen in self.seen.values() for m in seen)

    def count(self, name: str) -> int:
        return sum(message.body == b"afterwards" for message in self.seen[name])

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                assert not self.ended, self.ended
                await asyncio.sleep(0.005)


SEQUENCING = tuple(
    kind
    for kind in vars(sequencing).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whoever is at fault stays connected, so that every one of its packets is looked at."""
    found: list[str] = []

    def note(_: Presence, peer: ProcessId, reason: str) -> None:
        found.append(reason)

    monkeypatch.setattr(Presence, "fault", note)
    return found


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
        oc.Node("carol", seeds=[alice.address]) as carol,
        oc.Node("evil", seeds=[alice.address], rejoin=False, close_timeout=0.1) as evil,
    ):
        it = Scene([alice, bob, carol], evil)
        readers = [asyncio.create_task(it.read(node)) for node in (*it.honest, evil)]
        it.groups = [await node.join("g", order="total") for node in it.honest]
        await evil.join("g", order="total")
        await it.until(lambda: all(len(group.members) == 4 for group in it.groups))
        try:
            yield it
        finally:
            for reader in readers:
                reader.cancel()


Packets = Callable[[Scene], Iterator[msgspec.Struct]]


def node_views(s: Scene) -> Iterator[msgspec.Struct]:
    """Of the agreement: the largest numbers, and views that leave others out."""
    ballot = agreement.Ballot(HUGE, s.me)
    far = msgspec.structs.replace(s.view, id=ViewId(0, 0, HUGE))
    fenced = msgspec.structs.replace(s.view, id=ViewId(HUGE, s.me, HUGE))
    mine = tuple(node for node in s.view.nodes if node.pid == s.me)
    alone = msgspec.structs.replace(
        s.view, id=ViewId(0, 0, s.view.number + 1), nodes=mine, voters=(s.me,), parent=s.view.id
    )
    yield agreement.EndView(s.view.id, ballot)
    yield agreement.EndView(s.view.id, agreement.Ballot(1, s.me))
    yield agreement.EndView(ViewId(HUGE, HUGE, HUGE), ballot)
    for view in (far, fenced, alone):
        yield agreement.ProposeView(s.view.id, agreement.Ballot(1, s.me), view)
        yield agreement.InstallView(view)
        yield agreement.ViewReport(s.view.id, ballot, ballot, view)
    yield agreement.Heartbeat(ViewId(HUGE, 0, HUGE), True)
    yield agreement.Overruled(s.view.id, agreement.Ballot(HUGE, s.others[0]))
    yield agreement.ViewAccepted(s.view.id, agreement.Ballot(0, s.others[0]))


def accusations(s: Scene) -> Iterator[msgspec.Struct]:
    """Of others, once."""
    for p in s.others:
        yield agreement.Suspect(s.view.id, p)
        yield control.Lost(p, "it is bad")
    yield agreement.Suspect(s.view.id, HUGE)
    yield agreement.Forget(s.view.id, ())
    yield agreement.Forget(s.view.id, s.others)


def who_is_up(s: Scene) -> Iterator[msgspec.Struct]:
    """That a node is another one, or that there are some which nobody let in."""
    for p in s.others:
        yield control.NodeUp(NodeEntry(p, f"p{p}", 77, "127.0.0.1:9"))
        yield control.NodeDown(p, "gone")
    yield control.NodeUp(NodeEntry(2**31, "big", HUGE, "127.0.0.1:9"))
    yield agreement.Introduce(s.view.id, NodeEntry(2**31, "phantom", HUGE, "127.0.0.1:9"))
    yield agreement.JoinView(NodeEntry(s.others[0], "alice", 2, "127.0.0.1:9"))
    yield agreement.Reached(s.view.id, 2**31)


@pytest.mark.parametrize("packets", [node_views, accusations, who_is_up], ids=lambda p: p.__name__)
async def test_words_about_nodes_end_nobody(packets: Packets, faults: list[str]) -> None:
    async with scene() as it:
        for packet in list(packets(it)):
            it.say(packet)
        await it.all_is_well()
        assert len(faults) >= len(it.honest)


def wishes(gid: int) -> Callable[[Scene], Iterator[msgspec.Struct]]:
    def packets(s: Scene) -> Iterator[msgspec.Struct]:
        for protocol in ("sequencing", "sequencer_pb"):
            yield views.WantIn(s.entry(gid, protocol=protocol), "member")
        yield views.WantIn(s.entry(gid, order="nonsense", protocol="no such"), "guest", (), HUGE)
        yield views.WantOut(gid)
        yield views.WantOut(gid, HUGE)
        yield views.WantMoved(gid, HUGE)
        yield views.WantRefounded(gid)

    return packets


@pytest.mark.parametrize("gid", [0, CLUSTERS_OWN - 1, CLUSTERS_OWN, CLUSTERS_OWN + 1, 2**31, 2**40])
async def test_a_wish_for_a_group_that_cannot_be_ends_nobody(gid: int, faults: list[str]) -> None:
    async with scene() as it:
        for packet in list(wishes(gid)(it)):
            it.say(packet)
        await it.all_is_well()


@pytest.mark.parametrize("gid", [2, 2**31, CLUSTERS_OWN - 1])
async def test_a_group_that_nobody_named_leaves_numbers_for_others(gid: int) -> None:
    async with scene() as it:
        it.say(views.WantIn(it.entry(gid), "member"))
        rows = it.honest[0]._presence.engine.stack.rows
        await it.until(lambda: gid in rows)
        await it.all_is_well()


def changes(s: Scene) -> Iterator[msgspec.Struct]:
    """What only the coordinator says, and what nobody was asked."""
    term, done = s.view.term, s.evil._presence.engine.stack.changes.done
    usurped = msgspec.structs.replace(s.row, era=s.row.era + 1, leader=s.me)
    alone = msgspec.structs.replace(usurped, members=(s.me,), number=s.row.number + 1)
    for row in (usurped, alone):
        yield views.Plan(term, 99, s.change(row))
        yield views.Install(term, s.change(row))
        yield views.Rows(term, done + 1, s.change(row), (row,))
        yield views.Rows(term, HUGE, s.change(row), (row,), HUGE)
    yield views.Stop(term, HUGE, (s.group.gid, HUGE, -1), True)
    yield views.Report(term, 1, HUGE, s.change(usurped), s.change(alone), (HUGE,), ())
    held = NumbersHeld(s.row.era, HUGE, HUGE, (), ())
    yield views.Report(term, 1, done, None, None, (), ((s.group.gid, held),))
    yield views.Stop(HUGE, 1, (s.group.gid,), True)
    yield views.Install(HUGE, s.change(alone))
    yield views.Ready(term, HUGE)
    yield views.Installed(term, HUGE)
    yield views.AskRows(term)
    yield views.Load(((s.group.gid, s.me, HUGE),))
    yield views.WantDrained(HUGE)
    yield views.WantMoved(s.group.gid, HUGE)


async def test_words_of_a_change_from_one_that_does_not_coordinate_end_nobody(
    faults: list[str],
) -> None:
    async with scene() as it:
        leader = it.row.leader
        for packet in list(changes(it)):
            it.say(packet)
        await it.all_is_well()

        rows = it.honest[0]._presence.engine.stack.rows
        assert it.me not in (leader, rows[it.group.gid].leader)
        assert len(faults) >= 9 * len(it.honest)


def numbers(s: Scene) -> Iterator[msgspec.Struct]:
    """Of the sequencing service: numbers of one that numbers nothing, and of the far future."""
    places = ((2**40, 1, 1), (s.group.gid, HUGE, HUGE))
    yield sequencing.Accept(1, s.others[0], 1, 0, 0)
    yield sequencing.Accept(HUGE, s.others[0], HUGE, HUGE, HUGE, places, places)
    yield sequencing.Number(1, s.others[0], 1, HUGE, HUGE)
    yield sequencing.Marks(HUGE, HUGE, HUGE)
    yield sequencing.Answer(HUGE, HUGE, HUGE)
    yield sequencing.Ack(HUGE, HUGE)
    yield sequencing.Ack(-1, -1)
    yield sequencing.Fetch(1, HUGE)
    yield sequencing.Fetch(-5, -1)
    yield sequencing.Request(HUGE, HUGE, places, ((2**40, HUGE),))
    yield sequencing.Spread(HUGE, 1, 1, places)


async def test_numbers_of_one_that_does_not_number_end_nobody(faults: list[str]) -> None:
    async with scene() as it:
        for packet in list(numbers(it)):
            it.say(packet)
        await it.all_is_well()
        assert len(faults) >= 9 * len(it.honest)


# -- of one that only applied ---------------------------------------------------------------------


async def test_who_only_applied_may_join_and_nothing_else() -> None:
    """It says, in the name of the number that it was given, all that a member could say."""
    async with scene() as it:
        said = [*node_views(it), *accusations(it), *who_is_up(it), *wishes(2**31)(it)]
        said += [*changes(it), *numbers(it), sequencing.Request(1, 1)]
        for number, packet in enumerate(said):
            if isinstance(packet, control.Control | agreement.JoinView) and number % 2:
                continue  # one of each two is enough
            async with Stranger.at(it.honest[0]) as stranger:
                await stranger.greet(f"stranger{number}")
                assert isinstance(await stranger.apply(), control.Admitted)
                stranger.writer.write(it.packet(packet))
                await stranger.writer.drain()
        await it.all_is_well()
        members = it.honest[0].stats()["node_view"]["members"]
        assert members[:4] == ["alice#1", "bob#1", "carol#1", "evil#1"]
        assert not [name for name in members if name.startswith("stranger")]


async def test_phantoms_that_ask_to_be_in_have_no_vote() -> None:
    """They are more than the honest nodes, connect to one of them alone, and hang up together."""
    async with scene() as it, AsyncExitStack() as phantoms:
        for number in range(8):
            phantom = await phantoms.enter_async_context(Stranger.at(it.honest[0]))
            await phantom.greet(f"phantom{number}")
            admitted = await phantom.apply()
            assert isinstance(admitted, control.Admitted)
            phantom.writer.write(it.packet(agreement.JoinView(admitted.me)))
            await phantom.writer.drain()
        await phantoms.aclose()
        await it.all_is_well()
