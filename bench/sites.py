"""Two sites, three nodes each, 80 ms apart each way with 2 % loss: what gathering saves.

Every node has a network namespace of its own, all links have TLS, and a relay of ours between the
sites counts the packets. One member of each site sends at a steady rate. The runs differ in
`wide_batch_ms`, or in `delivery_level`. Needs what the live tests need, and their rig (tests/live).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from certificates import signed
from live.cluster import LiveCluster
from netlab.namespaces import Network
from netlab.shaping import Relay, relay_refusal
from ordercast.trace.read import read_events

SITES = {"tokyo": "abc", "osaka": "def"}
GATEWAYS = "ad"  # the relay counts what passes between these
SENDERS = "bf"
DELAY_MS, LOSS = 80, 0.02
MESSAGES, PER_SECOND = 300, 100
RUNS = ((0, "causal"), (10, "causal"), (40, "causal"), (10, "preack"), (10, "ack"))


async def run() -> dict[str, Any]:
    """All runs; what it says if the machine has no relay."""
    if (reason := relay_refusal()) is not None:
        return {"skipped": reason}
    figures: dict[str, Any] = {"messages": MESSAGES * len(SENDERS), "load": os.getloadavg()[0]}
    for batch_ms, level in RUNS:
        measured = await _measured(batch_ms, level)
        figures |= {f"{level}_{batch_ms}_{name}": value for name, value in measured.items()}
    return figures


async def _measured(batch_ms: int, level: str) -> dict[str, float]:
    with TemporaryDirectory() as folder, Network("abcdef") as network, Relay(network) as relay:
        for frm, to in (("abc", "def"), ("def", "abc")):
            relay.shape(delay_ms=DELAY_MS, loss=LOSS, frm=frm, to=to)
        async with LiveCluster(
            network, trace=Path(folder), each=_each(), protocol="two_layered", insecure=False,
            wide_batch_ms=batch_ms, delivery_level=level, suspect_ms=8000,
        ) as cluster:  # fmt: skip
            before = _packets(relay)
            sending = (cluster.send(name, MESSAGES, per_second=PER_SECOND) for name in SENDERS)
            await asyncio.gather(*sending)
            wanted = MESSAGES * len(SENDERS)
            await asyncio.gather(*(cluster.heard(name, wanted) for name in network.members))
            packets = _packets(relay) - before
        return {"packets": packets, **_delays(Path(folder))}


def _each() -> dict[str, dict[str, Any]]:
    return {
        name: {"site": site, "gateway": name in GATEWAYS, "tls": signed(name)}
        for site, names in SITES.items()
        for name in names
    }


def _packets(relay: Relay) -> int:
    """Between the gateways so far, both ways, confirmations of TCP among them."""
    counts, (one, other) = relay.counts(), GATEWAYS
    return sum(sum(counts[way].values()) for way in (f"{one}>{other}", f"{other}>{one}"))


def _delays(trace: Path) -> dict[str, float]:
    """Milliseconds from the send to the deliveries at the other site, and at one's own."""
    site_of = {name: site for site, names in SITES.items() for name in names}
    events = list(read_events(trace))
    sent = {e.message: e for e in events if e.kind == "send"}
    far, near = [], []
    for event in events:
        if event.kind == "deliver" and event.process != sent[event.message].process:
            send = sent[event.message]
            assert event.time and send.time and event.process and send.process
            same = site_of[event.process[0]] == site_of[send.process[0]]
            (near if same else far).append((event.time - send.time) / 1e6)
    return {
        "far_ms_median": median(far),
        "far_ms_p99": quantiles(far, n=100)[98],
        "near_ms_median": median(near),
    }


if __name__ == "__main__":
    for figure, value in asyncio.run(run()).items():
        print(figure, value)
