"""Brokers' price boards: the same board for all, and no sale is seen before its reason.

Each stock or commodity is a group with order="hybrid", and its members are the brokers who watch
it, so groups overlap. The price of memory chips triples. Ben sees it, and sells his shares of the
Computer Manufacturing Company (CMC), which buys those chips: their price falls. Whoever watches
both sees the chips rise first, whichever sequencers number the two groups, because Ben had seen it
when he sold. For that all items are read from the one stream of the node, not item by item.

It promises: the board of an item shows the same changes in the same order at all brokers. And what
a broker had seen when it changed a price is seen before that change, by everybody who sees both.
It does not promise that changes of two items which know nothing of each other come in the same
order to all. Brokers do not need that (order="causal-total" is for those who do), and without it
any sequencer can number any item: none waits for another.

    python examples/price_boards.py                                  three orders compared
    python examples/price_boards.py --name ann                       one broker ...
    python examples/price_boards.py --name ben --join HOST:PORT      ... and another
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, NamedTuple, Self

from terminal import lines, run

import ordercast as oc

REMEMBERED = 1000  # changes of an item that stay on its board


class Change(NamedTuple):
    """An item has a new price."""

    id: str
    item: str
    broker: str
    price: float
    because: str | None  # the id of the change that was the reason, of any item

    def __str__(self) -> str:
        reason = f" because of {self.because}" if self.because else ""
        return f"{self.item} {self.price:g} ({self.id}{reason})"


class Broker:
    """One broker, and the boards of the items it watches. For a node with codec="json"."""

    def __init__(self, node: oc.Node, *, order: str = "hybrid", **how: Any) -> None:
        self._node = node
        self._how = {"order": order, **how}  # as for `node.join`
        self._items: dict[str, oc.Group] = {}
        self._number = 0
        self.boards: dict[str, deque[Change]] = {}  # by item, the newest change last

    async def watch(self, item: str) -> list[Change]:
        """See every change of this item from now on; what stands on its board."""
        if item in self.boards:
            raise ValueError(f"{item!r} is watched already")
        board = self.boards[item] = deque(maxlen=REMEMBERED)

        def copy_board() -> bytes:
            return json.dumps(list(board)).encode()

        def take_board(copy: bytes) -> None:
            board.clear()
            board.extend(Change(*change) for change in json.loads(copy))

        state = oc.State(get=copy_board, set=take_board)
        try:
            self._items[item] = await self._node.join(item, state=state, **self._how)
        except BaseException:
            del self.boards[item]
            raise
        return list(board)

    async def forget(self, item: str) -> None:
        """Watch it no more."""
        await self._group(item).leave()
        del self._items[item], self.boards[item]

    async def change(self, item: str, price: float, because: Change | str | None = None) -> str:
        """Tell all who watch the item its new price; the id of the change."""
        group = self._group(item)
        self._number += 1
        change = f"{self._node.name}-{self._node.incarnation}.{self._number}"
        reason = because.id if isinstance(because, Change) else because
        await group.multicast([change, float(price), reason])
        return change

    def price(self, item: str) -> float | None:
        """The newest on the board."""
        board = self.boards.get(item)
        return board[-1].price if board else None

    def _group(self, item: str) -> oc.Group:
        if item not in self._items:
            watched = ", ".join(self._items) or "nothing"
            raise ValueError(f"{item!r} is not watched; {watched} is")
        return self._items[item]

    async def follow(self) -> AsyncIterator[Change]:
        """All changes of all items, in one order, over outages too. The boards follow from this."""
        before: oc.NodeOut | None = None
        while True:
            try:
                async for event in self._node:
                    if isinstance(event, oc.Message) and (change := self._take(event)):
                        yield change
                return
            except oc.NodeOut as reason:  # the node comes back by itself
                if reason is before:  # ... or never does, with rejoin=False
                    raise
                before = reason

    def _take(self, message: oc.Message) -> Change | None:
        match message.body:
            case [str(id), float(price), str() | None as because]:
                change = Change(id, message.group, message.sender, price, because)
                if message.group in self.boards:  # not forgotten in the meantime
                    self.boards[message.group].append(change)
                return change
        return None  # of another program


# -- a story, and three orders compared --------------------------------------------------------

WATCHED = {  # three groups, and every two of them overlap
    "ann": ("chips", "copper"),
    "ben": ("chips", "CMC"),
    "cleo": ("chips", "CMC", "copper"),
    "dora": ("CMC", "copper"),
    "eve": ("chips", "CMC"),
}


class Floor:
    """These brokers in one process, and two sequencers that number their changes."""

    def __init__(self, *, how: dict[str, Any] | None = None, **options: Any) -> None:
        self.cluster = oc.LocalCluster(
            len(WATCHED), names=(*WATCHED,), sequencers=2, in_process=True, codec="json", **options
        )
        self._how = how or {}
        self._following: list[asyncio.Task[None]] = []
        self.brokers: dict[str, Broker] = {}
        self.seen: dict[str, dict[str, Change]] = {}  # by broker: all changes by id, as they came
        self.too_early: set[str] = set()  # changes that somebody saw before their reason

    async def __aenter__(self) -> Self:
        await self.cluster.__aenter__()
        for node in self.cluster.nodes:
            broker = self.brokers[node.name] = Broker(node, **self._how)
            self._following.append(asyncio.ensure_future(self._follow(node.name, broker)))
            for item in WATCHED[node.name]:
                await broker.watch(item)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.cluster.aclose()
        await asyncio.gather(*self._following)  # they end when the nodes are closed

    async def _follow(self, name: str, broker: Broker) -> None:
        """Ben sells when he sees chips rise. Whoever watches both wants to see the reason first."""
        seen = self.seen[name] = {}
        with suppress(oc.GroupClosed):  # killed
            async for change in broker.follow():
                seen[change.id] = change
                if change.because and "chips" in broker.boards and change.because not in seen:
                    self.too_early.add(change.id)
                if change.item == "chips" and name == "ben":
                    await broker.change("CMC", 1200 / change.price, because=change)

    def boards(self, item: str) -> list[list[Change]]:
        """The board of this item, at each broker who watches it."""
        return [[*b.boards[item]] for b in self.brokers.values() if item in b.boards]

    async def until(self, item: str, changes: int) -> None:
        """Wait until all its boards show so many changes."""
        while any(len(board) < changes for board in self.boards(item)):
            await asyncio.sleep(0.001)


async def trade(floor: Floor, rounds: int) -> None:
    """Ann changes chips, and Ben answers; Dora changes CMC at the same time, knowing nothing."""
    for number in range(1, rounds + 1):
        await floor.brokers["ann"].change("chips", 10 + number)
        await floor.brokers["dora"].change("CMC", 100 + number)
        await floor.until("CMC", 2 * number)
        await floor.until("chips", number)


async def compare() -> None:
    """A network that loses one datagram in ten, under three orders."""
    lossy = oc.Udp(inject_loss=0.1, seed=7)
    group_by_group = {"order": "total", "protocol": "sequencer_pb", "scope": "group"}
    for how in ({"order": "causal"}, group_by_group, {"order": "hybrid"}):
        async with Floor(how=how, transport=lossy, retry_ms=10, gap_ms=10) as floor:
            await trade(floor, rounds=100)
            places = [*zip(*floor.boards("CMC"), strict=True)]
        differ = sum(len(set(place)) > 1 for place in places)
        print(
            f"order={how['order']!r}: {len(floor.too_early)} of 100 sales were seen before their "
            f"reason, and boards differ in {differ} of {len(places)} places"
        )


async def tell() -> None:
    """The story, in which a sequencer crashes, and Dora comes late to one board."""
    async with Floor() as floor:
        ann, dora = floor.brokers["ann"], floor.brokers["dora"]
        for number, price in enumerate((10, 30), start=1):
            await ann.change("chips", price)
            await floor.until("CMC", number)
        print("Cleo watches both, and saw:", *floor.seen["cleo"].values(), sep="\n  ")
        await floor.cluster.kill_leader()
        print("a sequencer crashes, and the brokers trade on")
        await dora.change("CMC", 41)
        await floor.until("CMC", 3)
        print("CMC is at", *{board[-1].price for board in floor.boards("CMC")}, "on all boards")
        print("Dora watches chips from now on, and has:", *await dora.watch("chips"), sep="\n  ")


async def demo() -> None:
    """A story, and three orders compared."""
    await tell()
    await compare()


async def session(node: oc.Node) -> None:
    """One broker at the terminal."""
    broker = Broker(node)
    usage = "/watch ITEM | /forget ITEM | ITEM PRICE | ITEM PRICE because CHANGE"
    print(usage, flush=True)
    showing = asyncio.ensure_future(show(broker))
    async for words in lines():
        try:
            match words:
                case ["/watch", item]:
                    for change in await broker.watch(item):
                        print(change, flush=True)
                case ["/forget", item]:
                    await broker.forget(item)
                case [item, price]:
                    await broker.change(item, float(price))
                case [item, price, "because", reason]:
                    await broker.change(item, float(price), because=reason)
                case _:
                    print(usage, flush=True)
        except (oc.OrdercastError, ValueError) as wrong:
            print(wrong, flush=True)
    showing.cancel()


async def show(broker: Broker) -> None:
    """Print every change."""
    async for change in broker.follow():
        print(change, flush=True)


if __name__ == "__main__":
    run(__doc__, demo, session)
