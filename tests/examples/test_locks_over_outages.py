"""The lock of the cookbook, when its worker is cut off and nobody has gone on without it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import ordercast as oc
from cables import Cable, until

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from lock_and_leader import Crew

FAST = {"heartbeat_ms": 50, "suspect_ms": 400}


async def test_a_worker_that_keeps_its_place_releases_its_lock_when_it_is_back(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cable = Cable(monkeypatch)
    async with ordercast_cluster(3, codec="json", sequencer=False, **FAST) as cluster:
        crews = [await Crew.join(node) for node in cluster.nodes]
        one, two, _ = crews

        async def hold() -> None:
            async with one.lock("backup"):
                await one.until(lambda: False)  # until the worker is out

        holding = asyncio.ensure_future(hold())
        await until(lambda: all(crew.queue("backup") == ["p1"] for crew in crews))
        cable.cut(*([node] for node in cluster.nodes))
        with pytest.raises(oc.NotPrimary):
            await holding
        await until(lambda: all(crew.leader is None for crew in crews))
        cable.mend()
        await until(lambda: all(crew.leader is not None for crew in crews))
        async with asyncio.timeout(20), two.lock("backup"):
            await until(lambda: all(crew.queue("backup") == ["p2"] for crew in crews))
