"""A name is of one group, and a number, too, whoever coordinates when they are given.

The coordinator answers which number a group has; the change that founds it comes later. In between
the coordinator may die, and the next one knows nothing of the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

import ordercast as oc
from ordercast.runtime.control import Enter
from ordercast.views.headers import WantIn

QUICK = {"heartbeat_ms": 50, "suspect_ms": 400}


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def deaf_to(node: oc.Node, group: str) -> asyncio.Event:
    """This node does not hear who wants into that group, until the event is set."""
    stack, hears = node._presence.engine.stack, asyncio.Event()
    receive = stack._receive_cluster

    def receive_or_not(src: int, header: Any) -> None:
        if hears.is_set() or not (isinstance(header, WantIn) and header.group.name == group):
            receive(src, header)

    stack._receive_cluster = receive_or_not  # type: ignore[method-assign]
    return hears


def asked_later(node: oc.Node, group: str, hears: asyncio.Event) -> None:
    """Nor who asks it which number that group has: they ask a new coordinator, too."""
    requests = node._presence.cluster_membership.requests
    handle = requests.handle

    async def later(pid: int, message: Any) -> None:
        await hears.wait()
        handle(pid, message)

    def handle_or_wait(pid: int, message: Any) -> None:
        if isinstance(message, Enter) and message.group == group and not hears.is_set():
            waiting.append(asyncio.ensure_future(later(pid, message)))
        else:
            handle(pid, message)

    waiting: list[asyncio.Task[None]] = []
    requests.handle = handle_or_wait  # type: ignore[method-assign]


def groups_at(node: oc.Node) -> dict[int, str]:
    rows = node._presence.engine.stack.rows
    return {g: row.entry.name for g, row in rows.items()}


@asynccontextmanager
async def four_nodes():
    """a coordinates, b is next."""
    nodes = [oc.Node("a", bootstrap=True, **QUICK)]
    await nodes[0].start()
    for name in "bjk":
        nodes.append(oc.Node(name, seeds=[nodes[0].address], **QUICK))
        await nodes[-1].start()
    readers = [asyncio.ensure_future(read(node)) for node in nodes]
    try:
        yield nodes
    finally:
        for node in nodes:
            kill(node)
        await asyncio.gather(*readers)


async def read(node: oc.Node) -> None:
    """`stable` waits for programs that read."""
    with suppress(oc.GroupClosed):  # at its end it is killed
        async for _ in node:
            pass


def kill(node: oc.Node) -> None:
    """As `kill -9`."""
    node._presence.fail(oc.GroupClosed("killed"))


async def answered_and_gone(a: oc.Node, j: oc.Node, part: asyncio.Future[Any]) -> None:
    """a has told j the number of its group, and dies before it hears that j wants in."""
    await until(lambda: 1 in j._presence.engine.stack.changes.wants or part.done())
    assert not part.done()
    kill(a)


@pytest.mark.parametrize("order", ["total", "causal"])
async def test_a_number_that_the_next_coordinator_gives_to_another_group(order: str) -> None:
    """j's wish names number 1; the next coordinator has given it to "y" when it hears that."""
    async with four_nodes() as (a, b, j, k):
        deaf_to(a, "x")
        hears = deaf_to(b, "x")
        asked_later(b, "x", hears)
        joining = asyncio.ensure_future(j.join("x", order="total", scope="group"))
        await answered_and_gone(a, j, joining)
        await until(lambda: b.leads)
        other = await k.join("y", order=order, scope="group")
        hears.set()
        group = await joining
        assert group.members == ("j",) and other.members == ("k",)
        for node in (b, j, k):
            await until(lambda node=node: groups_at(node) == {1: "y", 2: "x"})
        late = await b.join("x", order="total", scope="group")
        assert late.members == ("j", "b")
        await (await group.multicast(b"to x")).stable()
        also = await j.join("y", order=order, scope="group")
        assert also.members == ("k", "j")
        await (await also.multicast(b"to y")).stable()
        assert not any(node.stats()["peer_faults"] for node in (b, j, k))


async def test_a_number_that_the_next_coordinator_hears_of_first() -> None:
    """The wish founds "x" as number 1; who asks for "y" then gets another number."""
    async with four_nodes() as (a, b, j, k):
        deaf_to(a, "x")
        joining = asyncio.ensure_future(j.join("x", order="total"))
        await answered_and_gone(a, j, joining)
        await until(lambda: b.leads)
        other = await k.join("y", order="total")
        group = await joining
        assert group.members == ("j",) and other.members == ("k",)
        assert sorted(groups_at(b).values()) == ["x", "y"]


async def test_a_name_for_which_the_next_coordinator_gives_another_number() -> None:
    """Two want into "x" with two numbers for it. The one that was founded first is the group."""
    async with four_nodes() as (a, b, j, k):
        for node in (a, b):
            node._presence.engine.stack.top_group = 0 if node is a else 6
        deaf_to(a, "x")
        hears = deaf_to(b, "x")
        joining = asyncio.ensure_future(j.join("x", order="total"))
        await answered_and_gone(a, j, joining)
        await until(lambda: b.leads)
        other = asyncio.ensure_future(k.join("x", order="total"))
        await until(lambda: 7 in k._presence.engine.stack.changes.wants)
        hears.set()
        await asyncio.gather(joining, other)
        assert list(groups_at(b).values()) == ["x"]
        await (await joining.result().multicast(b"one group")).stable()
        assert sorted(other.result().members) == ["j", "k"]


async def test_a_group_that_turns_out_to_be_of_another_order_is_not_entered() -> None:
    """One name, two orders: whoever asked the next coordinator first makes the group."""
    async with four_nodes() as (a, b, j, k):
        deaf_to(a, "x")
        hears = deaf_to(b, "x")
        joining = asyncio.ensure_future(j.join("x", order="total"))
        await answered_and_gone(a, j, joining)
        await until(lambda: b.leads)
        making = asyncio.ensure_future(k.join("x", order="causal"))
        await until(lambda: making.done() or 1 in k._presence.engine.stack.changes.wants)
        hears.set()
        results = await asyncio.gather(joining, making, return_exceptions=True)
        kinds = sorted(type(result).__name__ for result in results)
        assert kinds == ["Group", "OrderMismatch"], results
        assert not any(node.stats()["peer_faults"] for node in (b, j, k))


async def test_wishes_that_nobody_asked_a_number_for_found_no_more_than_max_groups() -> None:
    """Names are asked for, and `max_groups` is told there; a member that means ill does not ask."""
    async with oc.Node("a", bootstrap=True, max_groups=4, **QUICK) as a:
        group = await a.join("honest", order="total", scope="group")
        stack = a._presence.engine.stack
        for number in range(10, 20):
            entry = msgspec.structs.replace(stack.rows[1].entry, gid=number, name=f"{number}")
            stack._receive_cluster(0, WantIn(entry, "member"))
        await until(lambda: len(groups_at(a)) == 4)
        with pytest.raises(oc.UsageError, match="max_groups=4"):
            await a.join("one more", order="total", scope="group")
        assert len(groups_at(a)) == 4
        assert (await (await group.multicast(b"on")).ordered()) is None
