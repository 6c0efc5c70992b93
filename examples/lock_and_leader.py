"""Locks with a fair queue, and one leader: for workers that must not do the same job twice.

All workers see the same requests and the same views in the same order (a total order), so all have
the same queues and know the same leader: nobody decides. A worker that crashes leaves with a view.
That view takes it out of the queues, and the next one holds the lock; the first member leads.

It promises: at every place in the order a lock has one holder, and there is one leader. Who asks
first is served first. Both come with a number that only rises (the place of the request in the
order; the view that made the leader). That survives one crash at a time (resilience=1).
It does not promise that a worker *knows* it has lost the lock. One that was paused, or cut off, may
go on as if it held it until its stream tells (`Excluded`; `NotPrimary` on the smaller side of a
partition, where `lock` raises it too). So show the number to whatever you write to, and have it
refuse a number older than one it has seen: see `Ledger`. If all workers end, numbers begin again.

    python examples/lock_and_leader.py                                  a demonstration
    python examples/lock_and_leader.py --name alice                     one worker ...
    python examples/lock_and_leader.py --name bob --join HOST:PORT      ... and another
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple, Self

from terminal import run

import ordercast as oc


class Request(NamedTuple):
    """One place in the queue for a lock."""

    fence: int  # its place in the total order: of two holders, the later one has the higher
    worker: str
    number: int  # among the requests of its worker


class Crew:
    """What one worker knows of all. For a node with codec="json"."""

    _group: oc.Group
    _following: asyncio.Task[None]

    def __init__(self, node: oc.Node) -> None:
        self._node = node
        self._place = 0  # requests and releases so far
        self._queues: dict[str, list[Request]] = {}  # by lock; the first one holds it
        self._leader: str | None = None
        self.term = 0  # the view that made it the leader
        self._view = 0  # the last one
        self._number = 0
        self._is_out = True  # from an outage to the view that ends it
        self._owed: list[list[object]] = []  # releases that could not be sent during an outage
        self._reason: oc.OrdercastError | None = None  # why this worker was out, the last time
        self._changed = asyncio.Event()  # something of the above
        self._releasing: set[asyncio.Task[None]] = set()

    @classmethod
    async def join(cls, node: oc.Node, name: str = "crew") -> Self:
        """Be one of the workers. It ends with the node."""
        self = cls(node)
        state = oc.State(get=self._snapshot, set=self._restore)
        self._group = await node.join(name, order="total", scope="group", state=state, resilience=1)
        self._following = asyncio.ensure_future(self._follow(aiter(self._group)))
        await self.until(lambda: not self._is_out)
        return self

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[int]:
        """Hold this lock inside the block; gives the fencing number. Waits for its turn."""
        if not isinstance(name, str):
            raise TypeError(f"the lock {name!r} is not a text")
        self._number += 1
        number = self._number
        try:
            await self._group.multicast(["acquire", name, number])
            await self.until(lambda: self._holds(name, number))
            yield self._queues[name][0].fence
        finally:
            await self._release(["release", name, number])

    async def _release(self, release: list[object]) -> None:
        with suppress(oc.GroupClosed):  # the others have taken it away
            try:
                await self._group.multicast(release)
            except oc.NodeEnded:
                self._owed.append(release)

    @property
    def leader(self) -> str | None:
        """None: this worker is out, and does not know."""
        return None if self._is_out else self._leader

    async def lead(self) -> int:
        """Wait until this worker is the leader; gives the fencing number, its term."""
        await self.until(lambda: self.leader == self._node.name)
        return self.term

    def queue(self, name: str) -> list[str]:
        """Who holds the lock, and who waits for it."""
        queue = [] if self._is_out else self._queues.get(name, [])
        return [request.worker for request in queue]

    def _holds(self, name: str, number: int) -> bool:
        queue = [] if self._is_out else self._queues.get(name, [])
        return [request[1:] for request in queue[:1]] == [(self._node.name, number)]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something that this worker can see. Raises why, if the worker is out."""
        before = self._reason
        while not is_so():
            if self._reason is not before or self._following.done():
                raise self._reason or oc.GroupClosed("the node of this worker is closed")
            await self._changed.wait()

    async def _follow(self, stream: AsyncIterator[oc.Message | oc.View | oc.Merge]) -> None:
        reads_on = True
        while reads_on:
            try:
                async for event in stream:
                    self._take(event)
                reads_on = False  # closed
            except oc.OrdercastError as reason:
                reads_on = isinstance(reason, oc.NodeOut) and reason is not self._reason
                self._reason = reason  # raised twice: the node has rejoin=False
            self._is_out = True
            self._tell()

    def _take(self, event: oc.Message | oc.View | oc.Merge) -> None:
        # The same at every worker: it depends on nothing but the events and their order.
        match event:
            case oc.Message(sender=worker, body=["acquire", str(name), int(number)]):
                self._place += 1
                request = Request(self._place, worker, number)
                self._queues.setdefault(name, []).append(request)
            case oc.Message(sender=worker, body=["release", str(name), int(number)]):
                self._place += 1
                queue = self._queues.get(name, [])
                queue[:] = [request for request in queue if request[1:] != (worker, number)]
            case oc.View(number=number) if number == self._view:  # told again: this worker is back
                self._end_outage(keeps_place=True)
            case oc.View(members=members, joined=joined) if self._node.name in members:
                for queue in self._queues.values():
                    queue[:] = [r for r in queue if r.worker in members and r.worker not in joined]
                if self._leader != members[0] or self._leader in joined:
                    self._leader, self.term = members[0], event.number
                self._view = event.number
                self._end_outage(keeps_place=self._node.name not in joined)
        self._queues = {name: queue for name, queue in self._queues.items() if queue}
        self._tell()

    def _end_outage(self, *, keeps_place: bool) -> None:
        """Nobody went on without a worker that keeps its place: it must release what it holds."""
        self._is_out = False
        owed, self._owed = self._owed, []
        for release in owed if keeps_place else []:
            self._releasing.add(task := asyncio.ensure_future(self._release(release)))
            task.add_done_callback(self._releasing.discard)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _snapshot(self) -> bytes:
        return json.dumps([self._place, self._leader, self.term, self._queues]).encode()

    def _restore(self, snapshot: bytes) -> None:
        self._place, self._leader, self.term, queues = json.loads(snapshot)
        self._queues = {name: [Request(*r) for r in queue] for name, queue in queues.items()}


class Ledger:
    """What the workers write to: a database, a file, a machine. It knows only numbers."""

    def __init__(self) -> None:
        self.newest = 0
        self.entries: list[str] = []

    def write(self, fence: int, entry: str) -> bool:
        """False: somebody with a newer number was here already."""
        if fence < self.newest:
            return False
        self.newest = fence
        self.entries.append(entry)
        return True


async def demo() -> None:
    """Three workers in this process. The first one leads and holds the lock when it is cut off."""
    ledger, paused, woken = Ledger(), asyncio.Event(), asyncio.Event()
    async with oc.LocalCluster(3, in_process=True, sequencer=False, codec="json") as cluster:
        crews = {node.name: await Crew.join(node) for node in cluster.nodes}

        async def work(name: str) -> None:
            async with crews[name].lock("report") as fence:
                print(f"{name} holds the lock with number {fence}")
                if name == "p1":
                    paused.set()  # the machine swaps, the disk hangs ...
                    await woken.wait()
                if ledger.write(fence, f"report by {name}"):
                    print(f"{name} writes its report")
                else:
                    print(f"{name} is refused: {fence} is older than {ledger.newest}")

        print(f"p1 leads since view {await crews['p1'].lead()}")
        working: list[asyncio.Task[None]] = []
        for name in crews:  # one after the other, so that the queue is this
            working.append(asyncio.create_task(work(name)))
            await crews["p2"].until(lambda: len(crews["p2"].queue("report")) == len(working))
        await paused.wait()
        print("the queue:", crews["p2"].queue("report"))
        await cluster.kill(0)
        print("p1 is cut off while it holds the lock")
        print(f"p2 leads since view {await crews['p2'].lead()}")
        await asyncio.gather(*working[1:])
        print("p1 wakes up, and still believes that it holds the lock")
        woken.set()
        await working[0]
        print("written:", ledger.entries)


async def session(node: oc.Node) -> None:
    """One worker that takes the lock again and again, and tells who leads."""
    crew = await Crew.join(node)
    telling = asyncio.ensure_future(tell_who_leads(crew))
    try:
        while True:
            with suppress(oc.NodeOut):
                async with crew.lock("report") as fence:
                    print(f"{node.name} holds the lock with number {fence}", flush=True)
                    await asyncio.sleep(1)
            await asyncio.sleep(0.1)
    finally:
        telling.cancel()


async def tell_who_leads(crew: Crew) -> None:
    known: str | None = None

    def is_new() -> bool:
        return crew.leader not in (None, known)

    while True:
        try:
            await crew.until(is_new)
            known = crew.leader
            print(f"{known} leads since view {crew.term}", flush=True)
        except oc.NodeOut as reason:
            known = None
            print("out:", reason, flush=True)


if __name__ == "__main__":
    run(__doc__, demo, session)
