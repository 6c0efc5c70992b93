"""Two sites that are far apart, with a line that loses packets, and a gateway that dies.

Times are printed, never asserted.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certificates import signed
from live.cluster import LiveCluster
from live.verdict import kept
from netlab.namespaces import Network
from netlab.shaping import Relay, relay_refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("live")

SITES = {"tokyo": "abc", "osaka": "def"}
OFFER = "be"  # to be a gateway
DELAY_MS, LOSS = 80, 0.02  # between the sites, each way

EACH: dict[str, dict[str, Any]] = {
    name: {"site": site, "gateway": name in OFFER}
    for site, names in SITES.items()
    for name in names
}


async def test_two_sites_keep_their_order_on_a_slow_and_lossy_line_when_a_gateway_is_killed(
    tmp_path: Path, spark: SparkSession
) -> None:
    if (reason := relay_refusal()) is not None:
        pytest.skip(reason)
    each = {name: {**options, "tls": signed(name)} for name, options in EACH.items()}
    with Network("abcdef") as network, Relay(network) as relay:
        for frm, to in (("abc", "def"), ("def", "abc")):
            relay.shape(delay_ms=DELAY_MS, loss=LOSS, frm=frm, to=to)
        how = {"protocol": "two_layered", "insecure": False}  # so only TLS leaves a namespace
        # A segment that is lost three times running stops a link for longer than the usual 2 s.
        patient = {**how, "suspect_ms": 8000}
        async with LiveCluster(network, trace=tmp_path, each=each, **patient) as cluster:
            await _stands(cluster, ["bac", "edf"])
            sending = [asyncio.ensure_future(cluster.send(n, 60, per_second=30)) for n in "adf"]
            await cluster.heard("c", 30)
            moment = await cluster.kill("e")
            await cluster.agree("abcdf")
            await asyncio.gather(*sending)
            await cluster.talk(5)
            print(*await cluster.recoveries(moment, without="e"), sep="\n")
            await _stands(cluster, ["bac", "df"])
        assert relay.lost() > 0
    assert "e#1" in kept(tmp_path).facts.crashed


async def _stands(cluster: LiveCluster, subgroups: list[str]) -> None:
    """Every member has these subgroups, each with its gateway first."""
    for name in cluster.alive:
        group = (await cluster.stats(name))["groups"][cluster.group]
        assert group["subgroups"] == [list(inside) for inside in subgroups], name
