"""Nodes leave the cluster in order, also if all go at once, or if one that stays is busy."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import pytest

import ordercast as oc
from listeners import free_port
from ordercast.runtime.closing import PARTING

COMPLAINT = "did not leave"


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if COMPLAINT in record.getMessage()]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("count", "voters"), [(2, 2), (3, 3), (7, 7), (4, 1)])
async def test_all_nodes_that_close_at_once_leave_in_order(
    caplog: pytest.LogCaptureFixture, count: int, voters: int, grouped: bool
) -> None:
    """The last two gave an empty group to each other, and waited for a word of those who were out;
    and nobody was let go as long as all wanted to."""
    caplog.set_level(logging.INFO, "ordercast.runtime.closing")
    nodes = [oc.Node("n0", bootstrap=True)]
    await nodes[0].start()
    for k in range(1, count):
        nodes.append(oc.Node(f"n{k}", seeds=[nodes[0].address], voter=k < voters))
        await nodes[-1].start()
    for node in nodes if grouped else ():
        await node.join("g", order="total")
    await asyncio.gather(*(node.aclose() for node in nodes))
    assert not told(caplog)


def test_a_node_leaves_in_order_while_the_program_of_the_other_one_blocks_its_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It gave up after a second, and the other one was cut off: half of two, without the first."""
    caplog.set_level(logging.INFO, "ordercast.runtime.closing")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def there(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    async def blocks() -> None:
        asyncio.get_running_loop().call_soon(time.sleep, 1.5 * PARTING)

    async def here() -> None:
        async with oc.Node("a", bootstrap=True) as a:
            other = oc.Node("b", seeds=[a.address])
            await asyncio.to_thread(there, other.start())
            while not a._presence.peers.bound:
                await asyncio.sleep(0.001)
            await asyncio.to_thread(there, blocks())
        alone = await asyncio.to_thread(there, members(other))
        assert alone == ["b#1"]
        await asyncio.to_thread(there, other.aclose())

    async def members(node: oc.Node) -> list[str]:
        while len(node.stats()["node_view"]["members"]) > 1:
            await asyncio.sleep(0.001)
        assert node.stats()["out_since"] is None
        return node.stats()["node_view"]["members"]

    try:
        asyncio.run(asyncio.wait_for(here(), 60))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
    assert not told(caplog)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_node_may_be_closed_while_it_starts(cancelled: bool) -> None:
    """It ended in an AttributeError; and if it was let in later, it was in and closed at once."""
    address = f"127.0.0.1:{free_port()}"
    node = oc.Node("late", seeds=[address])
    starting = asyncio.ensure_future(node.start())
    while not hasattr(node, "_presence"):
        await asyncio.sleep(0)
    if cancelled:
        starting.cancel()
    await node.aclose()
    async with oc.Node("first", bind=address, bootstrap=True) as first:
        with pytest.raises((oc.GroupClosed, oc.JoinTimeout, asyncio.CancelledError)):
            await starting
        while len(first.stats()["node_view"]["members"]) > 1:
            await asyncio.sleep(0.001)
