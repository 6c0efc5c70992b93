"""A node is cut off while it joins groups, for the first time or on its way back.

That is no end: it stays in the cluster, and goes on when it hears a majority again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import ordercast as oc
from ordercast.runtime.membership import Membership
from ordercast.runtime.own_groups import OwnGroups
from ordercast.runtime.presence import Presence


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def is_out(node: oc.Node) -> bool:
    return node.stats()["out_since"] is not None


class CutOff:
    """Cuts a node off as soon as it has asked to be in a group, and lets it hear the others again
    when it is told to. Its packets go on: the group's view comes meanwhile, as it did when a link
    came back just before the majority was heard."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, group: str) -> None:
        self.presence: Presence | None = None
        self.member: Membership | None = None
        self.ready = asyncio.Event()  # is the name to be cut off?
        opened = OwnGroups.open

        def open_and_cut(groups: OwnGroups, entry: Any, scope: str | None) -> Membership:
            member = opened(groups, entry, scope)
            presence = groups._presence
            wanted = self.ready.is_set() and self.presence is None
            if wanted and presence.me.name == name and entry.name == group:
                self.presence, self.member = presence, member
                presence.block(oc.NotPrimary(3, ("others",)))
            return member

        monkeypatch.setattr(OwnGroups, "open", open_and_cut)

    async def until_let_in(self) -> None:
        await until(lambda: self.member is not None and self.member.installed.done())
        await asyncio.sleep(0)

    def end(self) -> None:
        assert self.presence is not None
        self.presence.resume()


async def test_a_node_that_is_cut_off_on_its_way_back_takes_the_rest_of_its_seats(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its link flapped: it was excluded, came in again, and was cut off before it had asked for its
    second group. It was never in that one again, and said that it was back."""
    cut = CutOff(monkeypatch, "p2", "main")
    async with ordercast_cluster(3, order="total") as cluster:
        one, two = cluster.nodes[:2]
        others = [await node.join("other", order="fifo") for node in (one, two)]
        cut.ready.set()
        cluster.leader._presence.peers.bound[two._presence.me.pid].abort("the cable was cut")
        await cut.until_let_in()
        assert two.incarnation == 2 and is_out(two)
        with pytest.raises(oc.NotPrimary):
            await cluster.groups[1].multicast(b"nobody hears this")
        cut.end()
        await until(lambda: not is_out(two))
        assert two.stats()["groups"].keys() == {"main", "other"}
        receipt = await others[1].multicast(b"here again")
        await receipt.ordered()
        assert others[0].members == ("p1", "p2")


async def test_who_is_cut_off_on_its_way_back_is_not_back_when_it_has_all_its_seats(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = CutOff(monkeypatch, "p2", "main")
    async with ordercast_cluster(3, order="total") as cluster:
        two = cluster.nodes[1]
        cut.ready.set()
        cluster.leader._presence.peers.bound[two._presence.me.pid].abort("the cable was cut")
        await cut.until_let_in()
        for _ in range(20):  # there is no other group: the way back ends
            await asyncio.sleep(0)
        assert is_out(two) and "cut off" in two.stats()["out_reason"]
        cut.end()
        assert not is_out(two) and not two.stats()["out_reason"]


async def test_who_hears_the_others_again_is_not_back_before_it_has_all_its_seats(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = CutOff(monkeypatch, "p2", "main")
    async with ordercast_cluster(3, order="total") as cluster:
        two = cluster.nodes[1]
        cut.ready.set()
        cluster.leader._presence.peers.bound[two._presence.me.pid].abort("the cable was cut")
        await until(lambda: cut.presence is not None)
        assert cut.member is not None and not cut.member.installed.done()
        cut.end()
        assert is_out(two) and "excluded" in two.stats()["out_reason"]
        await until(lambda: not is_out(two))
        assert cut.member.installed.done()


async def test_a_join_that_succeeds_while_the_node_is_cut_off_gives_the_group(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It raised `NotPrimary`, and the node was a member: the next join raised `AlreadyJoined`."""
    cut = CutOff(monkeypatch, "p2", "late")
    cut.ready.set()
    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        joining = asyncio.ensure_future(two.join("late", order="fifo"))
        await cut.until_let_in()
        group = await joining
        assert group.members == ("p2",)
        with pytest.raises(oc.NotPrimary):
            await group.multicast(b"not now")
        cut.end()
        await (await group.multicast(b"now")).ordered()
