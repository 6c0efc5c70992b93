"""The brokers and sequencers of the demo, in real processes, and what befalls them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ordercast.runtime.local_cluster import LocalCluster
from ordercast.service.administrator import Administrator

BROKERS = ("ann", "ben", "cleo", "dora", "eve")
SEQUENCERS = 3
ITEMS = {  # each is a group; they overlap
    "chips": ("ann", "ben", "cleo", "dora"),
    "CMC": ("ben", "cleo", "dora", "eve"),
    "copper": ("ann", "cleo", "dora", "eve"),
    "oil": ("ann", "ben", "eve"),
}
LOOK_SECONDS = 0.02  # between two looks at who numbers an item
TRADING = "ordercast.cli.demo_trading"


class Exchange:
    """All processes. What was seen is in the traces, and in the boards of the brokers."""

    def __init__(self, traces: Path) -> None:
        self._cluster = LocalCluster(
            len(BROKERS), names=BROKERS, sequencers=SEQUENCERS, trace=traces, run="demo",
            consume=False, codec="json",
        )  # fmt: skip
        self._alive = list(BROKERS)
        self._administrator: Administrator

    async def __aenter__(self) -> Self:
        await self._cluster.__aenter__()
        try:
            await self._open()
            self._administrator = Administrator([w.address for w in self._cluster.workers])
        except BaseException:
            await self._cluster.aclose()
            raise
        return self

    async def _open(self) -> None:
        workers = dict(zip(BROKERS, self._cluster.workers, strict=True))
        for item, watchers in ITEMS.items():
            for name in watchers:
                await workers[name].do("join", group=item, order="hybrid")
        for seed, worker in enumerate(workers.values()):
            await worker.run(f"{TRADING}:follow", seed=seed)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._cluster.aclose()

    # -- what befalls them, while all trade -------------------------------------------------------

    @asynccontextmanager
    async def trading(self, changes: int) -> AsyncIterator[None]:
        """All brokers trade inside the block, and on until each has made so many changes."""
        await self._all("start")
        yield
        await self._all("finish", changes=changes)

    async def kill_broker(self, name: str) -> None:
        """kill -9."""
        self._alive.remove(name)
        await self._cluster.kill(BROKERS.index(name))

    async def move(self, item: str) -> tuple[str, str]:
        """Let another sequencer number the changes of this item: from which, to which."""
        before = await self._sequencer_of(item)
        after = next(one.name for one in self._cluster.sequencers if one.name != before)
        await self._administrator.migrate(item, after)
        return before, after

    async def kill_sequencer_of(self, item: str) -> str:
        """kill -9 of the one that numbers the changes of this item: its name."""
        name = await self._sequencer_of(item)
        await self._cluster.kill_sequencer(name)
        return name

    async def _sequencer_of(self, item: str) -> str:
        """Between two views, as after a crash, there is none for a moment."""
        while not (name := await self._find_sequencer_of(item)):
            await asyncio.sleep(LOOK_SECONDS)
        return name

    async def _find_sequencer_of(self, item: str) -> str:
        rows = await self._administrator.groups()
        return next(row.sequencer for row in rows if row.name == item)

    # -- what they have seen ----------------------------------------------------------------------

    async def closing(self) -> Closing:
        """The boards of all who are left, when everything is everywhere."""
        await self._all(
            "settle"
        )  # changes are: `finish` said so; now what was sold because of them
        reports = await self._all("report")
        boards: dict[str, list[list[str]]] = {item: [] for item in ITEMS}
        for report in reports:
            for item, board in report["boards"].items():
                boards[item].append(board)
        return Closing(
            prices={item: price for report in reports for item, price in report["prices"].items()},
            changes=sum(len(seen[0]) for seen in boards.values()),
            sales=sum(report["sales"] for report in reports),
            too_early=sum(report["too_early"] for report in reports),
            differing=[
                item for item, (first, *others) in boards.items() if others != [first] * len(others)
            ],
        )

    async def _all(self, what: str, **args: Any) -> list[Any]:
        workers = [w for w in self._cluster.workers if w.name in self._alive]
        return await asyncio.gather(*(w.run(f"{TRADING}:{what}", **args) for w in workers))


class Closing(NamedTuple):
    """What the brokers have seen at the end."""

    prices: dict[str, float]  # by item
    changes: int  # on one board of each item, together
    sales: int  # seen by brokers who saw their reasons, too
    too_early: int  # of these, seen before their reasons
    differing: list[str]  # items whose boards are not the same at all who watch it

    @property
    def holds(self) -> bool:
        """Every board the same, every reason first."""
        return not self.differing and not self.too_early
