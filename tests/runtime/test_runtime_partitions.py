"""A cluster is cut in two, and heals: who goes on, who waits, and how all come together again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

import ordercast as oc
from cables import Cable, Reader, free_addresses, until
from ordercast.runtime import rivals
from ordercast.runtime.coordination import Coordination
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events

FAST = {"heartbeat_ms": 50, "suspect_ms": 400}


@pytest.fixture
def cable(monkeypatch: pytest.MonkeyPatch) -> Cable:
    return Cable(monkeypatch)


def check(folder: Path, protocol: str) -> None:
    """Nothing that the protocol promises is violated."""
    found = judge(read_events(folder))
    order = "causal.global" if protocol == "cbcast" else "total.group"
    for name in ("wellformed", "no_duplication", "no_creation", "agreement", "validity", "views"):
        assert found[name].verdict != "violated", found[name]
    for name in ("vsync", "fifo.group", order):
        assert found[name].verdict == "ok", found[name]


@pytest.mark.parametrize("protocol", ["sequencer_pb", "cbcast", "agreed", "javagroups"])
async def test_the_smaller_side_is_told_and_comes_back(
    tmp_path: Path, ordercast_cluster, cable: Cable, protocol: str
) -> None:
    options = {"protocol": protocol, "sequencer": False, "trace": tmp_path, **FAST}
    async with ordercast_cluster(5, **options) as cluster:
        readers = [Reader(node) for node in cluster.nodes]
        await (await cluster.groups[4].multicast(b"together")).ordered()
        await until(lambda: all(b"together" in reader.bodies for reader in readers))
        few, many = cluster.nodes[:2], cluster.nodes[2:]
        cable.cut(few, many)
        await until(lambda: all(reader.outages for reader in readers[:2]))
        for group, reader in zip(cluster.groups[:2], readers[:2], strict=True):
            first = reader.outages[0]
            assert isinstance(first, oc.NotPrimary)
            assert set(first.missing) == {"p3", "p4", "p5"}
            with pytest.raises(oc.NotPrimary):
                await group.multicast(b"nobody hears this")
        await (await cluster.groups[2].multicast(b"we go on")).ordered()
        await until(lambda: all(b"we go on" in reader.bodies for reader in readers[2:]))
        await until(lambda: cluster.nodes[2].leads)
        cable.mend()
        await until(lambda: all(node.incarnation == 2 for node in few))
        await until(lambda: all(node.stats()["out_since"] is None for node in few))
        await (await cluster.groups[0].multicast(b"all again")).ordered()
        await until(lambda: all(b"all again" in reader.bodies for reader in readers))
        assert not any(reader.outages for reader in readers[2:])
        for reader in readers[:2]:
            assert isinstance(reader.outages[-1], oc.Excluded)
    check(tmp_path, protocol)


@pytest.mark.parametrize("order", ["total", "causal", "fifo"])
async def test_a_cluster_in_which_nobody_has_a_majority_goes_on_when_it_heals_and_says_so(
    tmp_path: Path, ordercast_cluster, cable: Cable, order: str
) -> None:
    options = {"order": order, "sequencer": False, "trace": tmp_path, **FAST}
    async with ordercast_cluster(3, **options) as cluster:
        readers = [Reader(node) for node in cluster.nodes]
        await until(lambda: all(len(group.members) == 3 for group in cluster.groups))
        cable.cut(*([node] for node in cluster.nodes))
        await until(lambda: all(reader.outages for reader in readers))
        cable.mend()
        await until(lambda: not any(node.stats()["blocked"] for node in cluster.nodes))
        await until(lambda: all(node.stats()["out_since"] is None for node in cluster.nodes))
        await (await cluster.groups[2].multicast(b"all again")).ordered()
        await until(lambda: all(b"all again" in reader.bodies for reader in readers))
        stayed = [reader for reader in readers if reader.node.incarnation == 1]
        assert len(stayed) >= 2  # a slow third one may have been excluded by the two
        for reader in stayed:
            place = reader.events.index(reader.outages[-1])
            [*_, before] = [e for e in reader.events[:place] if isinstance(e, oc.View)]
            sign = reader.events[place + 1]
            assert isinstance(sign, oc.View) and sign.joined == (reader.node.name,)
            assert (sign.number, sign.members) == (before.number, before.members)
    judged = judge(read_events(tmp_path))
    for name in ("wellformed", "views", "vsync", "no_duplication", "agreement"):
        assert judged[name].verdict != "violated", judged[name]


async def test_a_node_that_loses_the_others_one_after_the_other_sends_again_when_all_are_back(
    ordercast_cluster, cable: Cable
) -> None:
    """It is told twice that it is cut off, each time with other names."""
    async with ordercast_cluster(5, order="total", sequencer=False, **FAST) as cluster:
        readers = [Reader(node) for node in cluster.nodes]
        await until(lambda: all(len(group.members) == 5 for group in cluster.groups))
        one, two, *others = cluster.nodes
        cable.cut([one, two], *([node] for node in others))
        await until(lambda: all(reader.outages for reader in readers))
        told = len(readers[0].outages)
        cable.cut(*([node] for node in cluster.nodes))
        await until(lambda: len(readers[0].outages) > told)
        assert len(one._presence.blocked.missing) == 4
        cable.mend()
        await until(lambda: all(node.stats()["out_since"] is None for node in cluster.nodes))
        await (await cluster.groups[0].multicast(b"all again")).ordered()
        await until(lambda: all(b"all again" in reader.bodies for reader in readers))


async def test_a_group_that_is_left_while_nobody_has_a_majority_is_left_when_it_heals(
    ordercast_cluster, cable: Cable
) -> None:
    async with ordercast_cluster(3, order="total", sequencer=False, **FAST) as cluster:
        readers = [Reader(node) for node in cluster.nodes]
        await until(lambda: all(len(group.members) == 3 for group in cluster.groups))
        cable.cut(*([node] for node in cluster.nodes))
        await until(lambda: all(reader.outages for reader in readers))
        await cluster.groups[0].leave()
        with pytest.raises(oc.GroupClosed, match="left"):
            await cluster.groups[0].multicast(b"too late")
        cable.mend()
        await until(lambda: all(node.stats()["out_since"] is None for node in cluster.nodes))
        await until(lambda: all(set(g.members) == {"p2", "p3"} for g in cluster.groups[1:]))
        group = await cluster.nodes[0].join("main", order="total")
        assert set(group.members) == {"p1", "p2", "p3"}


async def test_a_group_that_is_left_while_others_go_on_without_the_node_is_left_for_good(
    ordercast_cluster, cable: Cable
) -> None:
    async with ordercast_cluster(3, order="total", sequencer=False, **FAST) as cluster:
        readers = [Reader(node) for node in cluster.nodes]
        await until(lambda: all(len(group.members) == 3 for group in cluster.groups))
        cable.cut(cluster.nodes[:1], cluster.nodes[1:])
        await until(lambda: readers[0].outages)
        await cluster.groups[0].leave()
        await until(lambda: set(cluster.groups[1].members) == {"p2", "p3"})
        cable.mend()
        await until(lambda: cluster.nodes[0].incarnation == 2)
        await until(lambda: cluster.nodes[0].stats()["out_since"] is None)
        assert set(cluster.groups[1].members) == {"p2", "p3"}
        assert not cluster.nodes[0].stats()["groups"]


async def test_outages_that_nobody_reads_do_not_pile_up() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        for name in ("g", "h"):
            await alice.join(name, order="fifo")
        inbox, presence = alice._lifetime.inbox, alice._presence
        for number in range(3):
            presence.block(oc.NotPrimary(number, ("bob",)))
            presence.resume()
            assert len(inbox.parcels) == 5  # two views, the outage, and again two views
        events = aiter(alice)
        assert [(await anext(events)).joined for _ in "gh"] == [("alice",)] * 2
        with pytest.raises(oc.NotPrimary, match="of node view 2"):
            await anext(events)
        assert [(await anext(events)).group for _ in "gh"] == ["g", "h"]


def test_two_sides_give_different_numbers_to_those_whom_they_let_in() -> None:
    """a lets b in; then they are apart, and each lets a node in, and each of these another."""
    a = 0
    b = next_number(a, highest=a)
    of_a, of_b = next_number(a, highest=b), next_number(b, highest=b)
    by_of_a, by_of_b = next_number(of_a, highest=of_a), next_number(of_b, highest=of_b)
    beside = next_number(a, highest=of_a), next_number(b, highest=of_b)
    given = [a, b, of_a, of_b, by_of_a, by_of_b, *beside]
    assert len(set(given)) == len(given)


def next_number(coordinator: int, highest: int) -> int:
    presence = SimpleNamespace(
        directory=SimpleNamespace(highest=highest),
        options=SimpleNamespace(partition="merge"),
        me=SimpleNamespace(pid=coordinator),
    )
    return Coordination(presence, "run", None)._next_pid()  # type: ignore[arg-type]


async def test_two_sides_that_never_met_find_each_other_where_a_node_is_that_one_of_them_knew(
    monkeypatch: pytest.MonkeyPatch, cable: Cable
) -> None:
    """c comes to the side of b, which then crashes, and comes back on the side of a. Neither a nor
    c has ever seen the other; c looks for the former life of b, and finds the present one."""
    monkeypatch.setattr(rivals, "LOOK_S", 0.2)
    monkeypatch.setattr(rivals, "SETTLE_S", 0.1)
    [place] = free_addresses(1)
    merging = {"partition": "merge", "sequencer": False, **FAST}
    async with oc.Node("a", bootstrap=True, **merging) as a:
        b = oc.Node("b", bind=place, seeds=[a.address], **merging)
        await b.start()
        cable.cut([a])
        await until(lambda: a.stats()["nodes"] == b.stats()["nodes"] == 1)
        async with oc.Node("c", seeds=[place], **merging) as c:
            await b.join("g", order="fifo")
            await c.join("g", order="fifo")
            b._presence.engine.stop()  # as a crash: nobody is told
            b._presence.peers.close("a crash", goodbye=False)
            await until(lambda: c.stats()["nodes"] == 1)
            await b.aclose()
            cable.mend()
            async with oc.Node("b", bind=place, seeds=[a.address], **merging) as again:
                await until(lambda: a.stats()["nodes"] == again.stats()["nodes"] == 3)
                await until(lambda: c.incarnation == 2 and c.stats()["out_since"] is None)


@pytest.mark.parametrize("protocol", ["cbcast", "sequencer_pb", "agreed", "javagroups"])
async def test_two_sides_go_on_and_merge(
    tmp_path: Path, ordercast_cluster, cable: Cable, protocol: str
) -> None:
    options = {"protocol": protocol, "sequencer": False, "trace": tmp_path, **FAST}
    async with ordercast_cluster(5, partition="merge", **options) as cluster:
        readers = [Reader(node) for node in cluster.nodes]
        await (await cluster.groups[4].multicast(b"together")).ordered()
        few, many = cluster.nodes[:2], cluster.nodes[2:]
        cable.cut(few, many)
        await until(lambda: cluster.groups[0].members == ("p1", "p2"))
        await until(lambda: cluster.groups[4].members == ("p3", "p4", "p5"))
        for place in (0, 4):
            await (await cluster.groups[place].multicast(b"side %d" % place)).ordered()
        await until(lambda: b"side 0" in readers[1].bodies and b"side 4" in readers[2].bodies)
        cable.mend()
        await until(lambda: all(node.incarnation == 2 for node in few))
        await (await cluster.groups[0].multicast(b"all again")).ordered()
        await until(lambda: all(b"all again" in reader.bodies for reader in readers))
        for reader in readers:
            assert not reader.outages
            merges = [event for event in reader.events if isinstance(event, oc.Merge)]
            assert {merge.chosen for merge in merges} == {("p3", "p4", "p5")}
            assert {name for merge in merges for name in merge.sides[1]} == {"p1", "p2"}
            after = reader.events[reader.events.index(merges[-1]) + 1]
            assert isinstance(after, oc.View) and set(after.members) == set(cluster.names)
    check(tmp_path, protocol)


class Tally:
    """What a node has read, as the state of its group."""

    def __init__(self) -> None:
        self.words: set[bytes] = set()
        self.merges: list[tuple[tuple[str, ...], ...]] = []

    @property
    def state(self) -> oc.State:
        return oc.State(get=self._get, set=self._set, merge=self._merge)

    def _get(self) -> bytes:
        return b" ".join(sorted(self.words))

    def _set(self, state: bytes) -> None:
        self.words = set(state.split())

    def _merge(self, sides: tuple[tuple[str, ...], ...], mine: bytes, chosen: bytes) -> bytes:
        self.merges.append(sides)
        return b" ".join(sorted({*mine.split(), *chosen.split()}))

    async def read(self, node: oc.Node) -> None:
        async for event in node:
            if isinstance(event, oc.Message):
                self.words.add(event.body)


async def test_a_node_that_comes_over_brings_both_states_together(
    ordercast_cluster, cable: Cable
) -> None:
    async with ordercast_cluster(3, sequencer=False, partition="merge", **FAST) as cluster:
        tallies = [Tally() for _ in cluster.nodes]
        groups = []
        tasks = []
        for node, tally in zip(cluster.nodes, tallies, strict=True):
            tasks.append(asyncio.ensure_future(tally.read(node)))
            groups.append(await node.join("g", order="total", state=tally.state))
        await groups[0].multicast(b"together")
        await until(lambda: all(b"together" in tally.words for tally in tallies))
        cable.cut(cluster.nodes[:1], cluster.nodes[1:])
        await until(lambda: groups[0].members == ("p1",) and groups[2].members == ("p2", "p3"))
        await groups[0].multicast(b"few")
        await groups[1].multicast(b"many")
        await until(lambda: b"few" in tallies[0].words and b"many" in tallies[2].words)
        cable.mend()
        await until(lambda: tallies[0].merges)
        assert tallies[0].merges == [(("p2", "p3"), ("p1",))]
        assert tallies[0].words == {b"together", b"few", b"many"}
        assert tallies[1].words == {b"together", b"many"}  # the program sends what is new there
    await asyncio.gather(*tasks)
