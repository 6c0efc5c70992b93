"""A dictionary that every node has a copy of, and that no crash makes forget.

All copies do the same operations in the same order (a total order), so they are the same. Who comes
later gets the copy of another first (state transfer), then the operations from exactly there on.

It promises: when `set`, `delete` or `compare_and_set` returns, the operation is done here and one
node more, if there is one, holds it (resilience=1): no single crash loses it. `get` answers from
the copy at hand, at once; after `sync` that has all that was done anywhere before.
It does not: an operation that raises `NodeOut` may be done or not. If all nodes end, so does the
data. A node on the smaller side of a partition reads what it had, and writes raise `NotPrimary`.

    python examples/replicated_dictionary.py                                  a demonstration
    python examples/replicated_dictionary.py --name alice                     one node ...
    python examples/replicated_dictionary.py --name bob --join HOST:PORT      ... and another
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any, Self

from terminal import lines, run

import ordercast as oc

Outcome = bool | oc.OrdercastError


class ReplicatedDict:
    """For a node with codec="json". Keys are texts, values whatever JSON can say."""

    _group: oc.Group
    _following: asyncio.Task[None]

    def __init__(self, node: oc.Node) -> None:
        self._node = node
        self._data: dict[str, Any] = {}
        self._under_way: dict[int, asyncio.Future[Outcome]] = {}  # own operations, by number
        self._number = 0

    @classmethod
    async def join(cls, node: oc.Node, name: str) -> Self:
        """The dictionary of this name, with all that is in it. It ends with its node."""
        self = cls(node)
        state = oc.State(get=self._snapshot, set=self._restore)
        self._group = await node.join(name, order="total", scope="group", state=state, resilience=1)
        self._following = asyncio.ensure_future(self._follow(aiter(self._group)))
        return self

    def get(self, key: str, default: Any = None) -> Any:
        """As this copy has it."""
        return self._data.get(key, default)

    def copy(self) -> dict[str, Any]:
        """All of it, as this copy has it."""
        return dict(self._data)

    async def set(self, key: str, value: Any) -> None:
        """Have this value everywhere."""
        await self._do("set", key, value)

    async def delete(self, key: str) -> bool:
        """Was it there?"""
        return await self._do("delete", key)

    async def compare_and_set(self, key: str, expected: Any, value: Any) -> bool:
        """Set it if it is still as `expected` (None: not there). Of several at once, one wins."""
        return await self._do("compare_and_set", key, expected, value)

    async def sync(self) -> None:
        """Wait until this copy has all that was done anywhere before."""
        await self._do("sync", "")

    async def _do(self, operation: str, key: str, *values: Any) -> bool:
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} is not a text")
        self._number += 1
        number = self._number
        done = self._under_way[number] = asyncio.get_running_loop().create_future()
        try:
            await self._group.multicast([number, operation, key, *values])
            outcome = await done
        finally:
            del self._under_way[number]
        if isinstance(outcome, bool):
            return outcome
        raise outcome

    async def _follow(self, stream: AsyncIterator[oc.Message | oc.View | oc.Merge]) -> None:
        before: oc.OrdercastError | None = None
        reason: oc.OrdercastError | None = None
        while reason is None or (isinstance(reason, oc.NodeOut) and reason is not before):
            before = reason  # raised twice: the node has rejoin=False
            try:
                async for event in stream:
                    if isinstance(event, oc.Message):
                        self._take(event)
                reason = oc.GroupClosed("the node of this dictionary is closed")
            except oc.OrdercastError as error:
                reason = error
            for number in self._under_way:
                self._answer(number, reason)

    def _take(self, message: oc.Message) -> None:
        match message.body:
            case [int(number), str(operation), str(key), *values]:
                outcome = self._apply(operation, key, values)
                if message.sender == self._node.name:
                    self._answer(number, outcome)

    def _apply(self, operation: str, key: str, values: list[Any]) -> bool:
        # The same at every copy: it depends on nothing but the data and the operation.
        match operation, values:
            case "set", [value]:
                self._data[key] = value
            case "delete", []:
                was_there = key in self._data
                self._data.pop(key, None)
                return was_there
            case "compare_and_set", [expected, value]:
                if self._data.get(key) != expected:
                    return False
                self._data[key] = value
        return True

    def _answer(self, number: int, outcome: Outcome) -> None:
        done = self._under_way.get(number)
        if done is not None and not done.done():
            done.set_result(outcome)

    def _snapshot(self) -> bytes:
        return json.dumps(self._data).encode()

    def _restore(self, snapshot: bytes) -> None:
        self._data = json.loads(snapshot)


async def demo() -> None:
    """Three nodes in this process; one comes late, and the one that began it all crashes."""
    async with oc.LocalCluster(3, in_process=True, sequencer=False, codec="json") as cluster:
        p1, p2, p3 = cluster.nodes
        one = await ReplicatedDict.join(p1, "settings")
        two = await ReplicatedDict.join(p2, "settings")
        await two.set("colour", "blue")
        await one.set("size", 7)
        won = await asyncio.gather(
            one.compare_and_set("size", 7, 8), two.compare_and_set("size", 7, 9)
        )
        print(f"p1 and p2 both change size from 7, one of them wins: {sorted(won)}")
        three = await ReplicatedDict.join(p3, "settings")
        print("p3 comes late and has", three.copy())
        await one.set("colour", "green")
        await cluster.kill(0)
        print("p1 sets colour to green, and crashes as soon as that is acknowledged")
        await three.delete("size")
        await two.sync()
        print("p2 has", two.copy())
        print("p3 has", three.copy())


async def session(node: oc.Node) -> None:
    """One node, told what to do by the terminal."""
    settings = await ReplicatedDict.join(node, "settings")
    usage = "set KEY VALUE | get KEY | delete KEY | cas KEY EXPECTED VALUE | all"
    print(usage, flush=True)
    async for words in lines():
        try:
            match words:
                case ["set", key, value]:
                    await settings.set(key, value)
                    print("done")
                case ["get", key]:
                    print(settings.get(key, "not there"))
                case ["delete", key]:
                    print("done" if await settings.delete(key) else "not there")
                case ["cas", key, expected, value]:
                    won = await settings.compare_and_set(key, expected, value)
                    print("done" if won else f"no: it is {settings.get(key, 'not there')}")
                case ["all"]:
                    print(settings.copy())
                case _:
                    print(usage)
        except oc.NodeOut as reason:
            print("it may be done or not:", reason)
        sys.stdout.flush()


if __name__ == "__main__":
    run(__doc__, demo, session)
