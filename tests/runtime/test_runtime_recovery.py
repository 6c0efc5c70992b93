"""A majority is gone: what comes back by itself, and what an operator's word does."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import AsyncExitStack
from typing import Any

import pytest

import ordercast as oc
from cables import Cable, Reader
from ordercast.errors import UsageError
from ordercast.service.administrator import Administrator
from ordercast.service.survey import survey
from replicas import Log

FAST = {"heartbeat_ms": 50, "suspect_ms": 400, "join_timeout": 40.0}
PATIENCE = 60.0  # seconds, for anything: no test judges time


@pytest.fixture
def cable(monkeypatch: pytest.MonkeyPatch) -> Cable:
    return Cable(monkeypatch)


async def until(true: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


def free_ports(count: int) -> list[int]:
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in opened]
    for each in opened:
        each.close()
    return ports


def kill(*nodes: oc.Node) -> None:
    for node in nodes:
        node._presence.fail(oc.GroupClosed("killed"))


def members_of(node: oc.Node) -> list[str]:
    return node.stats()["node_view"]["members"]


async def begin(
    stack: AsyncExitStack, names: str, **options: Any
) -> tuple[dict[str, oc.Node], dict[str, str]]:
    """Nodes of these names, the first of which begins the cluster; and all their addresses."""
    ports = free_ports(len(names))
    where = {name: f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)}
    nodes: dict[str, oc.Node] = {}
    for name in names:
        nodes[name] = await start(stack, name, where, first=not nodes, **options)
    return nodes, where


async def start(
    stack: AsyncExitStack, name: str, where: dict[str, str], *, first: bool = False, **options: Any
) -> oc.Node:
    others = [address for other, address in where.items() if other != name]
    way: dict[str, Any] = {"bootstrap": True} if first else {"seeds": others}
    if options.pop("listed", False):
        way = {"members": where}
    else:
        way["bind"] = where[name]
    node = oc.Node(name, **way, **{**FAST, **options})
    return await stack.enter_async_context(node)


@pytest.mark.parametrize("options", [{"voters": ("a", "b", "c")}, {"listed": True}], ids=str)
async def test_a_majority_that_was_killed_comes_back_and_finds_the_state(
    caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "abc", **options)
        logs = {name: Log(node) for name, node in nodes.items()}
        for name, log in logs.items():
            group = await nodes[name].join("g", order="total", state=log.state)
            log.read()
        await (await group.multicast(b"before")).stable()
        kill(nodes["b"], nodes["c"])
        await until(lambda: nodes["a"].stats()["blocked"])
        again = await asyncio.gather(*(start(stack, name, where, **options) for name in "bc"))
        for node in again:
            assert node.incarnation == 2
            log = Log(node)
            group = await node.join("g", order="total", state=log.state)
            log.read()
            await until(lambda log=log: log.lines[:1] == ["c before"])
        await (await group.multicast(b"after")).stable()
        await until(lambda: logs["a"].lines == ["c before", "c after"])
        [row] = nodes["a"].stats()["recoveries"]
        assert not row["forgotten"] and nodes["a"].stats()["node_view"]["generation"] == 1
        assert "all that vote are here again" in caplog.text


async def test_who_is_sent_to_another_survivor_is_sent_on_to_the_one_that_lets_it_in() -> None:
    """The first of the list that lives leads; the others know only the second."""
    options = {"voters": tuple("abcde")}
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "abcde", **options)
        await until(lambda: all(len(members_of(node)) == 5 for node in nodes.values()))
        kill(nodes["c"], nodes["d"], nodes["e"])
        await until(lambda: all(len(nodes[name].stats()["blocked"]) == 3 for name in "ab"))
        told = str(nodes["b"]._presence.blocked)
        assert "or when a, b, c, d, e are all here, started again or not" in told
        known = {name: where[name] for name in "b"}
        again = [start(stack, n, {**known, n: where[n]}, **options) for n in "cde"]
        for node in await asyncio.gather(*again):
            assert node.incarnation == 2
        await until(lambda: len(members_of(nodes["a"])) == 5)


async def test_nodes_without_a_vote_are_told_that_nothing_can_be_recovered() -> None:
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "a")
        worker = oc.Node("w", seeds=[where["a"]], voter=False, close_timeout=0.5, **FAST)
        await stack.enter_async_context(worker)
        kill(nodes["a"])
        await until(lambda: worker.stats()["blocked"])
        told = worker.stats()["out_reason"]
        assert "No node that votes is here" in told and "ordercast recover" not in told
        found = await survey(worker.address)
        with pytest.raises(UsageError, match="no node that votes is here, and one that was"):
            await Administrator([worker.address], timeout=PATIENCE).forget([], found.view)


@pytest.mark.parametrize("voter", [True, False])
async def test_workers_that_die_together_do_not_stop_the_others(voter: bool) -> None:
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "abc")
        seeds = list(where.values())
        workers = [oc.Node(f"w{k}", seeds=seeds, voter=voter, **FAST) for k in range(4)]
        for worker in workers:
            await stack.enter_async_context(worker)
        group = await nodes["c"].join("g", order="total")
        readers = [Reader(node) for node in nodes.values()]
        kill(*workers)
        await until(lambda: all(members_of(n) == ["a#1", "b#1", "c#1"] for n in nodes.values()))
        await (await group.multicast(b"on")).stable()
        assert not any(reader.outages for reader in readers)


async def test_two_of_five_go_on_when_an_operator_forgets_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "abcde")
        group = await nodes["d"].join("g", order="total")
        reader = Reader(nodes["d"])
        await until(lambda: all(len(members_of(n)) == 5 for n in nodes.values()))
        kill(nodes["a"], nodes["b"], nodes["c"])
        await until(lambda: all(len(nodes[n].stats()["blocked"]) == 3 for n in "de"))
        found = await survey(where["e"])
        assert not found.has_majority and {m.identity for m in found.missing} == {
            "a#1",
            "b#1",
            "c#1",
        }
        assert [held.identity for held in found.here] == ["e#1", "d#1"]
        assert found.here[1].groups[0].startswith("g at view ")
        asked = Administrator([where["e"]], timeout=PATIENCE)
        with pytest.raises(UsageError, match=f"the node view is {found.view}, not 77"):
            await asked.forget(["a"], 77)
        with pytest.raises(UsageError, match="'d' is here; stop it first"):
            await asked.forget(["d"], found.view)
        with pytest.raises(UsageError, match="no node 'z' is missing; missing: a#1, b#1, c#1"):
            await asked.forget(["z"], found.view)
        with pytest.raises(UsageError, match="still be no majority: it waits for b#1, c#1, too"):
            await asked.forget(["a"], found.view)
        assert nodes["e"].stats()["blocked"]
        await asked.forget(["a", "b#1", "c"], found.view)
        await asked.forget(["a", "b#1", "c"], found.view)  # what is so already is done
        await until(lambda: not any(nodes[n].stats()["blocked"] for n in "de"))
        await (await group.multicast(b"on")).stable()
        await until(lambda: b"on" in reader.bodies)
        for name in "de":
            [row] = nodes[name].stats()["recoveries"]
            assert sorted(row["forgotten"]) == ["a#1", "b#1", "c#1"]
        said = [r for r in caplog.records if "recovered by an operator" in r.getMessage()]
        assert len(said) == 2 and all(record.levelno == logging.WARNING for record in said)
        word = f"ForgetRequest(nodes=('a', 'b#1', 'c'), view={found.view})"
        assert asked_for(caplog)[-2:] == [word] * 2
        assert f"ForgetRequest(nodes=('d',), view={found.view})" in asked_for(caplog)  # refused


def asked_for(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What operators asked for, as the log of the node that was asked keeps it, in warnings."""
    lines = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert all(level == logging.WARNING for level, line in lines if "ForgetRequest" in line)
    return [line.removeprefix("asked for: ") for _, line in lines if line.startswith("asked for: ")]


async def test_the_side_that_was_given_up_is_told_and_comes_back_as_newcomers(
    cable: Cable, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "abc")
        groups = {name: await node.join("g", order="total") for name, node in nodes.items()}
        readers = {name: Reader(node) for name, node in nodes.items()}
        await until(lambda: all(len(group.members) == 3 for group in groups.values()))
        cable.cut([nodes["a"]], [nodes["b"], nodes["c"]])
        await until(lambda: nodes["a"].stats()["blocked"])
        await (await groups["b"].multicast(b"given up")).stable()
        found = await survey(where["a"])
        await Administrator([where["a"]], timeout=PATIENCE).forget([], found.view)
        assert set(asked_for(caplog)) == {f"ForgetRequest(nodes=(), view={found.view})"}
        await (await groups["a"].multicast(b"kept")).stable()
        cable.mend()
        await until(lambda: all(nodes[name].incarnation == 2 for name in "bc"))
        await until(lambda: all(len(members_of(n)) == 3 for n in nodes.values()))
        for name in "bc":
            told = [out for out in readers[name].outages if isinstance(out, oc.Excluded)]
            assert any("the cluster was recovered without it" in str(out) for out in told)
        await until(lambda: all(node.stats()["out_since"] is None for node in nodes.values()))
        await (await groups["c"].multicast(b"together")).stable()
        await until(lambda: all(b"together" in reader.bodies for reader in readers.values()))
        assert b"given up" not in readers["a"].bodies
        assert nodes["a"].incarnation == 1


async def test_with_nobody_missing_there_is_nothing_to_forget() -> None:
    async with AsyncExitStack() as stack:
        _, where = await begin(stack, "a")
        with pytest.raises(UsageError, match="no node of node view 1 is missing"):
            await Administrator([where["a"]]).forget([], 1)


async def test_a_drained_sequencer_is_shown_and_may_number_again() -> None:
    async with AsyncExitStack() as stack:
        _, where = await begin(stack, "ab", sequencer=True)
        asked = Administrator([where["b"]], timeout=PATIENCE)
        await asked.drain("b")
        assert {row.name: row.drained for row in await asked.sequencers()} == {
            "a": False,
            "b": True,
        }
        await asked.undrain("b")
        assert not any(row.drained for row in await asked.sequencers())


async def test_a_group_whose_members_were_all_out_goes_on_from_the_newest_state(
    cable: Cable,
) -> None:
    """x is cut off; y goes on alone, then is cut off; x is back first, y later."""
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "stu", refound_ms=10**8)
        logs = {}
        for name in "xy":
            nodes[name] = await stack.enter_async_context(
                oc.Node(name, seeds=list(where.values()), voter=False, **FAST)
            )
            logs[name] = Log(nodes[name])
            group = await nodes[name].join("g", order="total", state=logs[name].state)
            logs[name].read()
        await (await group.multicast(b"m1")).stable()
        others = [nodes[name] for name in "stu"]
        cable.cut([nodes["x"]], [nodes["y"], *others])
        await until(lambda: group.members == ("y",))
        await (await group.multicast(b"m2")).stable()
        cable.cut([nodes["x"]], [nodes["y"]], others)
        await until(lambda: all(len(members_of(node)) == 3 for node in others))
        cable.cut([nodes["y"]], [nodes["x"], *others])
        await until(lambda: nodes["x"].incarnation == 2)
        asked = Administrator([where["s"]], timeout=PATIENCE)
        await until(lambda: len(members_of(nodes["s"])) == 4)
        async with asyncio.timeout(PATIENCE):
            while (await asked.groups())[0].waits_for != ("y#1",):
                await asyncio.sleep(0.05)
        cable.mend()
        await until(
            lambda: all(log.views and len(log.views[-1].members) == 2 for log in logs.values())
        )
        await until(lambda: all(log.lines == ["y m1", "y m2"] for log in logs.values()))
        for log in logs.values():
            numbers = [view.number for view in log.views]
            assert numbers == sorted(numbers)
        with pytest.raises(UsageError, match="group 'g' has members: it waits for nobody"):
            await asked.refound("g")


async def test_an_operator_lets_a_group_begin_without_who_has_newer_state(cable: Cable) -> None:
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "stu", refound_ms=10**8)
        logs = {}
        for name in "xy":
            nodes[name] = await stack.enter_async_context(
                oc.Node(name, seeds=list(where.values()), voter=False, **FAST)
            )
            logs[name] = Log(nodes[name])
            group = await nodes[name].join("g", order="total", state=logs[name].state)
            logs[name].read()
        await (await group.multicast(b"m1")).stable()
        others = [nodes[name] for name in "stu"]
        cable.cut([nodes["x"]], [nodes["y"], *others])
        await until(lambda: group.members == ("y",))
        await (await group.multicast(b"m2")).stable()
        last = logs["y"].views[-1].number
        kill(nodes["y"])
        await until(lambda: all(len(members_of(node)) == 3 for node in others))
        cable.mend()
        await until(lambda: len(members_of(nodes["s"])) == 4)
        asked = Administrator([where["t"]], timeout=PATIENCE)
        async with asyncio.timeout(PATIENCE):
            while (await asked.groups())[0].waits_for != ("y#1",):
                await asyncio.sleep(0.05)
        await asked.refound("g")
        await until(lambda: logs["x"].views[-1].members == ("x",))
        assert logs["x"].lines == ["y m1"] and logs["x"].views[-1].number > last


async def test_a_group_whose_last_member_was_killed_goes_on_counting_its_views() -> None:
    async with AsyncExitStack() as stack:
        nodes, where = await begin(stack, "stu", refound_ms=500)
        last = await stack.enter_async_context(oc.Node("x", seeds=list(where.values()), **FAST))
        group = await last.join("g", order="fifo")
        reader = Reader(last)
        await until(lambda: reader.events)
        reader.task.cancel()
        kill(last)
        await until(lambda: all(len(members_of(node)) == 3 for node in nodes.values()))
        log = Log(nodes["t"])
        await nodes["t"].join(group.name, order="fifo")
        log.read()
        await until(lambda: log.views)
        assert log.views[0].number > reader.events[0].number
