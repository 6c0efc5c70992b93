"""A member of a live cluster relays what another one never said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import ordercast as oc
from ordercast.protocols.reliable import ReliableData
from ordercast.protocols.uniform import UniformData
from ordercast.runtime.conflicts import LOGGED, Conflicts
from ordercast.wire.messages import pack_messages

PATIENCE_S = 60


async def heard(node: oc.Node, count: int) -> list[bytes]:
    bodies = []
    async for event in node:
        if isinstance(event, oc.Message):
            bodies.append(event.body)
            if len(bodies) == count:
                break
    return bodies


@pytest.mark.parametrize(
    ("protocol", "header"), [("reliable", ReliableData), ("uniform", UniformData)]
)
async def test_what_a_member_relays_in_the_name_of_another_is_not_delivered_and_is_seen(
    protocol: str, header: Any
) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
        oc.Node("carol", seeds=[alice.address]) as carol,
        oc.Node("evil", seeds=[alice.address]) as evil,
    ):
        nodes = (alice, bob, carol, evil)
        groups = [await node.join("g", order="none", protocol=protocol) for node in nodes]
        readers = [asyncio.create_task(heard(node, 1)) for node in (alice, bob, carol)]
        presence = evil._presence
        gid = next(iter(presence.groups.memberships))
        others = (bob._presence.me.pid, carol._presence.me.pid)
        async with asyncio.timeout(PATIENCE_S):
            while len(presence.engine.stack.view(gid).members) < 4:
                await asyncio.sleep(0.01)
            era = presence.engine.stack.view(gid).era
            forged = header(alice._presence.me.pid, 1, 0)
            packet = presence.engine._channels[gid].encode(
                gid, era, forged, pack_messages(1, [b"forged"])
            )
            presence.transmit(others, packet, None)
            while not all(group.held_back() for group in groups[1:3]):
                await asyncio.sleep(0.01)
            await groups[0].multicast(b"m")
            assert await asyncio.gather(*readers) == [[b"m"]] * 3
        for node in (bob, carol):
            assert node.stats()["conflicts"]["count"] >= 1
            assert node.stats()["conflicts"]["last"] == (
                "alice#1 and evil#1 say different things of frame 1 of alice#1 in g"
            )
            assert node.stats()["peer_faults"] == 0


def test_each_two_are_in_the_log_once_and_every_conflict_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    conflicts = Conflicts()
    for n in (1, 2, 3):
        conflicts.note("alice#1", "evil#1", "g", n)
    assert (conflicts.count, len(caplog.records)) == (3, 1)
    assert "alice#1 and evil#1" in caplog.text and "one of the two lies" in caplog.text
    for n in range(2 * LOGGED):
        conflicts.note("alice#1", f"node{n}", "g", 1)
    assert len(conflicts._logged) <= LOGGED
