"""How long a cluster is without service after a fault, at default settings.

Five nodes, each in a network namespace of its own; all who live send all the time. From the moment
of the fault: until each survivor has its next view, and until it delivers the next message in it.
Then ten nodes with `partition="merge"`: from the moment the network heals until all have one view.
Needs what the live tests need, and their rig (tests/live).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from live.cluster import LiveCluster, Recovery
from netlab.namespaces import Network, refusal

RUNS = 5
PER_SECOND = 200  # messages of each survivor
PAUSE = 1.0  # seconds before the next fault
SIDES = "abcdef", "ghij"


async def run(*, runs: int = RUNS) -> dict[str, Any]:
    """All of it; what it says if the machine has no namespaces."""
    if (reason := refusal()) is not None:
        return {"skipped": reason}
    found: dict[str, list[Recovery]] = {}
    for _ in range(runs):
        await _one_life(found)
    figures: dict[str, Any] = {"runs": runs, "load": os.getloadavg()[0]}
    for fault, recoveries in found.items():
        figures |= _summary(fault, recoveries)
    merges = await _merges(runs)
    figures["merge_of_ten_ms_median"] = 1e3 * median(merges)
    figures["merge_of_ten_ms_worst"] = 1e3 * max(merges)
    return figures


def _summary(fault: str, recoveries: Sequence[Recovery]) -> dict[str, float]:
    views, messages = [r.view for r in recoveries], [r.message for r in recoveries]
    return {
        f"{fault}_view_ms_median": 1e3 * median(views),
        f"{fault}_view_ms_worst": 1e3 * max(views),
        f"{fault}_message_ms_median": 1e3 * median(messages),
        f"{fault}_message_ms_worst": 1e3 * max(messages),
    }


# -- one side goes on -----------------------------------------------------------------------------


async def _one_life(found: dict[str, list[Recovery]]) -> None:
    """One cluster, and every fault in turn; after each, all five are back."""
    with Network("abcde") as network, tempfile.TemporaryDirectory() as folder:
        async with LiveCluster(network, trace=Path(folder), order="total") as cluster:
            for fault, seconds, cause, cure in _FAULTS:
                for role in ("member", "coordinator"):
                    await asyncio.sleep(PAUSE)
                    first = await _coordinator(cluster)
                    others = [name for name in network.members if name != first]
                    victims = _victims(fault, first if role == "coordinator" else others[-1], first)
                    key = f"{fault}_{role}"
                    found.setdefault(key, []).extend(
                        await _measured(cluster, victims, seconds, cause)
                    )
                    await cure(cluster, victims)
                    await cluster.agree(network.members)


def _victims(fault: str, victim: str, first: str) -> list[str]:
    """Two are cut off, of five; with or without the coordinator."""
    if fault != "partition":
        return [victim]
    return [victim, next(name for name in "abcde" if name not in (victim, first))]


async def _measured(
    cluster: LiveCluster,
    victims: list[str],
    seconds: float,
    cause: Callable[[LiveCluster, list[str]], Awaitable[float]],
) -> list[Recovery]:
    others = [name for name in cluster.network.members if name not in victims]
    count = int(seconds * PER_SECOND)
    sending = [
        asyncio.ensure_future(cluster.send(name, count, per_second=PER_SECOND)) for name in others
    ]
    await asyncio.sleep(0.2)
    moment = await cause(cluster, victims)
    await cluster.agree(others)
    await asyncio.gather(*sending)
    found = [one for one in await cluster.recoveries(moment, victims) if one.member in others]
    assert len(found) == len(others), "a survivor delivered nothing after the view"
    return found


async def _coordinator(cluster: LiveCluster) -> str:
    stats = await cluster.stats(cluster.network.members[1])
    return str(stats["coordinator"]).partition("#")[0]


async def _kill(cluster: LiveCluster, victims: list[str]) -> float:
    return await cluster.kill(victims[0])


async def _start_again(cluster: LiveCluster, victims: list[str]) -> None:
    await cluster.start(victims[0])
    await cluster.join(victims[0])


async def _freeze(cluster: LiveCluster, victims: list[str]) -> float:
    return cluster.freeze(victims[0])


async def _thaw(cluster: LiveCluster, victims: list[str]) -> None:
    cluster.thaw(victims[0])


async def _cut_off(cluster: LiveCluster, victims: list[str]) -> float:
    moment = time.monotonic()
    others = [name for name in cluster.network.members if name not in victims]
    cluster.network.partition(others, victims)
    return moment


async def _heal(cluster: LiveCluster, victims: list[str]) -> None:
    cluster.network.heal()


_FAULTS = (
    ("kill", 1.0, _kill, _start_again),
    ("freeze", 3.5, _freeze, _thaw),
    ("partition", 3.5, _cut_off, _heal),
)


# -- both sides go on -----------------------------------------------------------------------------


async def _merges(runs: int) -> list[float]:
    """Seconds from the moment the network heals until all ten have one view."""
    seconds: list[float] = []
    with Network("abcdefghij") as network, tempfile.TemporaryDirectory() as folder:
        how = {"order": "total", "partition": "merge"}
        async with LiveCluster(network, trace=Path(folder), **how) as cluster:
            for number in range(runs):
                network.partition(*SIDES)
                await asyncio.gather(*(cluster.agree(side) for side in SIDES))
                await asyncio.sleep(PAUSE + number / runs)  # not always as far from the next look
                healed = time.monotonic()
                network.heal()
                await cluster.agree(network.members)
                seconds.append(time.monotonic() - healed)
                await cluster.talk(5)
    return seconds
