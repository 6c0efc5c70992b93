"""What each broker's process of the demo does: change prices, and sell because of what it sees."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from ordercast.errors import GroupClosed, NodeEnded
from ordercast.runtime.receipt import Receipt
from ordercast.runtime.stream_events import Message
from ordercast.runtime.worker import Worker

SALE_CHANCE = 0.1  # that a broker sells something because of a change it sees
PAUSE_SECONDS = 0.002  # between two changes that a broker makes
FIRST_PRICE = 100.0


class Trader:
    """One broker. Changes are [id, price, reason]; a reason is None, or [item, id]."""

    def __init__(self, worker: Worker, seed: int) -> None:
        self.worker = worker
        self.rng = Random(seed)
        self.number = 0
        self.boards: dict[str, list[str]] = {item: [] for item in worker.groups}  # ids of changes
        self.prices: dict[str, float] = dict.fromkeys(worker.groups, FIRST_PRICE)
        self.seen: set[str] = set()  # all ids of all boards
        self.sales = 0  # seen with their reason: this broker watches both items
        self.too_early = 0  # ... before their reason
        self.last: dict[str, Receipt] = {}  # of the last change made here, by item
        self.wanted: int | None = None  # changes; None: go on
        self.trading: asyncio.Future[None]
        self.following = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        try:
            async for event in self.worker.node:
                if isinstance(event, Message):
                    await self._take(event)
        except (NodeEnded, GroupClosed):
            return

    async def _take(self, message: Message) -> None:
        change, price, because = message.body
        self.boards[message.group].append(change)
        self.prices[message.group] = price
        self.seen.add(change)
        if because is None:
            if message.sender != self.worker.node.name and self.rng.random() < SALE_CHANCE:
                await self._change(self.rng.choice([*self.boards]), 0.99, [message.group, change])
        elif because[0] in self.boards:
            self.sales += 1
            self.too_early += because[1] not in self.seen

    async def _change(self, item: str, factor: float, because: list[str] | None) -> None:
        self.number += 1
        change = f"{self.worker.node.name}.{self.number}"
        price = round(self.prices[item] * factor, 2)
        self.last[item] = await self.worker.groups[item].multicast([change, price, because])

    async def trade(self) -> None:
        """Change the price of each item in turn, until `finish` says how often."""
        items = [*self.boards]
        made = 0
        while self.wanted is None or made < self.wanted:
            await self._change(items[made % len(items)], self.rng.uniform(0.98, 1.026), None)
            made += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def settle(self) -> None:
        """Wait until all others have seen what was changed here."""
        for receipt in [*self.last.values()]:
            await receipt.stable()


async def follow(worker: Worker, seed: int) -> None:
    """Follow the boards of all items that were joined."""
    worker.trader = Trader(worker, seed)  # type: ignore[attr-defined]


async def start(worker: Worker) -> None:
    """Trade from now on."""
    trader: Trader = worker.trader  # type: ignore[attr-defined]
    trader.wanted = None
    trader.trading = asyncio.ensure_future(trader.trade())


async def finish(worker: Worker, changes: int) -> None:
    """Trade no more when so many changes are made; returns when all others have seen them."""
    trader: Trader = worker.trader  # type: ignore[attr-defined]
    trader.wanted = changes
    await trader.trading
    await trader.settle()


async def settle(worker: Worker) -> None:
    """Wait until all others have seen what this broker changed."""
    await worker.trader.settle()  # type: ignore[attr-defined]


async def report(worker: Worker) -> dict[str, Any]:
    """What this broker has seen."""
    trader: Trader = worker.trader  # type: ignore[attr-defined]
    return {
        "boards": trader.boards,
        "prices": trader.prices,
        "sales": trader.sales,
        "too_early": trader.too_early,
    }
