"""A whole cluster on this machine, for tests, demonstrations and measurements.

async with LocalCluster(3, order="total") as cluster:            # real processes
    await cluster.workers[0].do("send", group="main", count=1000)
    await cluster.kill(2)                                        # a real kill -9

async with LocalCluster(3, order="total", in_process=True) as cluster:
    await cluster.groups[0].multicast(b"hello")
    async for event in cluster.nodes[1]: ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from ordercast.errors import GroupClosed
from ordercast.runtime.group import Group
from ordercast.runtime.keywords import (
    ClusterKeywords,
    JoinKeywords,
    NodeKeywords,
    SharedKeywords,
    unknown,
)
from ordercast.runtime.node import Node
from ordercast.runtime.processes import WorkerProcess

SEQUENCER = "sequencer"

KNOWN = ("in_process", *ClusterKeywords.__annotations__, *NodeKeywords.__annotations__)

T = TypeVar("T")


class LocalCluster:
    """A cluster of n members, named p1 to pn, and of sequencers unless `sequencer=False`."""

    def __init__(
        self,
        n: int,
        *,
        in_process: bool = False,
        sequencer: bool = True,
        sequencers: int = 1,
        names: Sequence[str] = (),
        order: str | None = None,
        protocol: str | None = None,
        group: str = "main",
        consume: bool = True,
        **options: Unpack[SharedKeywords],
    ) -> None:
        """With an `order` or a `protocol` all members join `group`. Options as for `Node`.

        `sequencers` is the number of nodes that join no group and number messages; the first of
        them coordinates the cluster. `names` are those of the members, in place of p1 to pn.

        Processes read and count their streams by themselves, unless `consume=False`: then a
        workload must read them. With `in_process` the caller must read them.
        """
        if wrong := unknown(options, KNOWN):
            raise TypeError(f"a LocalCluster has {wrong}")
        if n < 1:
            raise ValueError(f"n={n}: a cluster needs at least 1 member")
        if names and len(names) != n:
            raise ValueError(f"names has {len(names)} names for {n} members: give one for each")
        if sequencers < 1:
            raise ValueError(
                f"sequencers={sequencers} must be at least 1; for none at all say sequencer=False"
            )
        self.names = tuple(names) or tuple(f"p{number}" for number in range(1, n + 1))
        self.in_process = in_process
        self.nodes: list[Node] = []  # in_process: the members
        self.groups: list[Group] = []  # in_process: their groups, in the same order
        self.workers: list[WorkerProcess] = []  # processes: the members
        self.sequencers: list[Node | WorkerProcess] = []  # nodes that are no members
        self.leader: Node | WorkerProcess | None = None  # the first of these, or the first member
        self.group = group
        self._sequencer_names = _sequencer_names(sequencers) if sequencer else ()
        self._consume = consume
        self._join: JoinKeywords = {"order": order, "protocol": protocol}
        self._options = options
        if options.get("trace") is not None:
            options["trace"] = str(options["trace"])  # it may have to go to another process

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the members, all at once, then the sequencers, the coordinator last."""
        members: list[Node | WorkerProcess] = [*self.nodes, *self.workers]
        await _all(_close(member) for member in members if member is not self.leader)
        await _all(_close(one) for one in self.sequencers if one is not self.leader)
        if self.leader is not None:
            await _close(self.leader)

    async def kill(self, member: int) -> None:
        """Kill the process of a member (kill -9). With `in_process`, break all its connections."""
        places = len(self.nodes or self.workers)
        if not 0 <= member < places:
            raise ValueError(f"there is no member {member}; members are 0 to {places - 1}")
        await _kill(self.nodes[member] if self.in_process else self.workers[member])

    async def kill_sequencer(self, name: str) -> None:
        """Kill the sequencer of that name."""
        found = next((one for one in self.sequencers if one.name == name), None)
        if found is None:
            there = ", ".join(one.name for one in self.sequencers) or "none"
            raise ValueError(f"no sequencer {name!r}; there is {there}")
        await _kill(found)

    async def kill_leader(self) -> None:
        """Kill the node that the cluster began with, which coordinates it."""
        if self.leader is not None:
            await _kill(self.leader)

    async def join(self, group: str, **how: Unpack[JoinKeywords]) -> list[Group]:
        """All members join one more group, one after the other."""
        if self.in_process:
            return [await node.join(group, **how) for node in self.nodes]
        for worker in self.workers:
            await worker.do("join", group=group, **how)
        return []

    async def _start(self) -> None:
        names = self.names
        if self._sequencer_names:
            await self._start_sequencers()
        else:
            self.leader = await self._start_one(names[0], None)
            self._add(self.leader)
            names = names[1:]
        assert self.leader is not None
        for member in await _all(self._start_one(name, self.leader.address) for name in names):
            self._add(member)
        if any(self._join.values()):
            self.groups = await self.join(self.group, **self._join)

    async def _start_sequencers(self) -> None:
        first, *others = self._sequencer_names
        self.leader = await self._start_one(first, None, sequencer=True)
        self.sequencers.append(self.leader)
        self.sequencers += await _all(
            self._start_one(name, self.leader.address, sequencer=True) for name in others
        )

    def _add(self, member: Node | WorkerProcess) -> None:
        if isinstance(member, Node):
            self.nodes.append(member)
        else:
            self.workers.append(member)

    async def _start_one(self, name: str, seed: str | None, **role: bool) -> Node | WorkerProcess:
        place: dict[str, Any] = {"bootstrap": True} if seed is None else {"seeds": [seed]}
        options = {**self._options, **place, **role}
        if self.in_process:
            node = Node(name, **options)
            await node.start()
            return node
        worker = WorkerProcess(name)
        try:
            await worker.start(consume=self._consume, **options)
        except BaseException:
            await worker.kill()
            raise
        return worker


def _sequencer_names(count: int) -> tuple[str, ...]:
    if count == 1:
        return (SEQUENCER,)
    return tuple(f"{SEQUENCER}-{number}" for number in range(1, count + 1))


async def _kill(member: Node | WorkerProcess) -> None:
    if isinstance(member, WorkerProcess):
        await member.kill()
    else:
        member._presence.fail(GroupClosed("this node was killed"))


async def _close(member: Node | WorkerProcess) -> None:
    if isinstance(member, Node):
        await member.aclose()
    else:
        await member.close()


async def _all(work: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*work))
