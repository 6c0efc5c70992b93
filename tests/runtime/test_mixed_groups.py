"""Groups with different promises at the same nodes do not touch each other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import ordercast as oc

ROUNDS = 20
ORDERS = [
    ("none", None),
    ("fifo", None),
    ("causal", None),
    ("total", None),
    ("hybrid", None),
    ("causal-total", "sequencing_causal"),
    ("global-total", "sequencing_global"),
]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("durable", [{"resilience": 1}, {"uniform": True}], ids=["1", "uniform"])
@pytest.mark.parametrize(("order", "protocol"), ORDERS, ids=[order for order, _ in ORDERS])
async def test_a_group_with_a_resilience_and_one_without_work_side_by_side(
    order: str, protocol: str | None, durable: dict[str, Any], transport: str
) -> None:
    async with (
        oc.Node("alice", bootstrap=True, transport=transport) as alice,
        oc.Node("bob", seeds=[alice.address], transport=transport) as bob,
        oc.Node("carol", seeds=[alice.address], transport=transport) as carol,
    ):
        nodes = (alice, bob, carol)
        readers = [asyncio.create_task(read(node)) for node in nodes]
        groups = [await node.join("plain", order=order, protocol=protocol) for node in nodes]
        for node in nodes:
            groups.append(await node.join("safe", order=order, protocol=protocol, **durable))
        for _ in range(ROUNDS):
            for group in groups:
                await group.multicast(b"m")
        async with asyncio.timeout(60):
            counts = await asyncio.gather(*readers)
        assert counts == [{"plain": 3 * ROUNDS, "safe": 3 * ROUNDS}] * 3


async def read(node: oc.Node) -> dict[str, int]:
    """How many messages came in each group, when all have come."""
    counts = {"plain": 0, "safe": 0}
    async for event in node:
        if isinstance(event, oc.Message):
            counts[event.group] += 1
            if all(count == 3 * ROUNDS for count in counts.values()):
                break
    return counts
