"""Two machines, each with an interface of its own, find each other by multicast."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from netlab.namespaces import Network

pytestmark = pytest.mark.xdist_group("live")

GUARD = 30.0  # seconds; against hanging

NODE = """\
import asyncio, sys
import ordercast as oc

async def main(name, host, timeout, **place):
    somewhere = oc.Discovery("239.192.7.7:7701")
    node = oc.Node(
        name, bind=f"{host}:7700", discover=somewhere, insecure=True, join_timeout=float(timeout),
        **place,
    )
    try:
        async with node:
            print(node.stats()["nodes"], "nodes", flush=True)
            if place:
                await asyncio.to_thread(sys.stdin.read)
    except oc.JoinTimeout as reason:
        print(reason, flush=True)

asyncio.run(main(*sys.argv[1:4], **({"bootstrap": True} if sys.argv[1] == "alice" else {})))
"""


def command(network: Network, name: str, timeout: float) -> list[str]:
    python = [sys.executable, "-c", NODE]
    return [*network.enter(name), *python, name, network.address(name), str(timeout)]


@contextmanager
def alice_runs(network: Network) -> Iterator[None]:
    """She starts the cluster, and ends when her input does."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command(network, "alice", GUARD), stdin=pipe, stdout=pipe, text=True
    ) as alice:
        assert alice.stdout is not None
        assert alice.stdout.readline() == "1 nodes\n"
        try:
            yield
        finally:
            alice.communicate(timeout=GUARD)


def bob_says(network: Network, timeout: float) -> str:
    done = subprocess.run(
        command(network, "bob", timeout), capture_output=True, text=True, timeout=GUARD, check=True
    )
    return done.stdout


def test_a_node_finds_the_one_on_another_machine_unless_the_cable_is_out() -> None:
    with Network(["alice", "bob"]) as network, alice_runs(network):
        assert bob_says(network, timeout=GUARD) == "2 nodes\n"
        network.unplug("alice")
        told = bob_says(network, timeout=0.3)
        assert "multicast group 239.192.7.7:7701 on interface 10.77.0.2: asked" in told
        assert "no node of cluster 'ordercast' answered" in told
