"""Arena of groups with subgroups: nodes at named sites, beside all that happens to clusters anyway.

Gateways crash, and whole sites are cut off and come back.
"""

from __future__ import annotations

from random import Random

import msgspec

from ordercast.core.protocol import OrderingProtocol
from ordercast.core.whereabouts import Whereabouts
from ordercast.simulation.clustered import Boot, ClusterConfig, ClusterFault, Host, PartitionHosts
from ordercast.simulation.faults import Crash, Heal
from sweep.churn import CHURN_MS, FORMED_MS, LOSSES, churn

NAMES = ("tokyo", "lisbon", "quito")
LEVELS = ("causal", "causal", "preack", "ack")


def sites(protocol: type[OrderingProtocol], seed: int) -> ClusterConfig:
    """A churning cluster whose hosts are at two or three places."""
    base = churn(protocol, seed)
    rng = Random(f"sites {seed}")
    where = _where(rng, base.hosts)
    *faults, calm = base.faults
    options = msgspec.structs.replace(base.options, delivery_level=rng.choice(LEVELS))
    return msgspec.structs.replace(
        base,
        sites=where,
        options=options,
        faults=(*faults, *_gateway_crashes(rng, where), *_cut_off(rng, where), calm),
    )


def _where(rng: Random, hosts: int) -> tuple[Whereabouts, ...]:
    names = NAMES[: rng.randint(2, 3)]
    return tuple(Whereabouts(rng.choice(names), rng.random() < 0.4) for _ in range(hosts))


def _gateway_crashes(rng: Random, where: tuple[Whereabouts, ...]) -> list[ClusterFault]:
    """One that offers to be a gateway; it may come back."""
    gateways = [host for host, here in enumerate(where) if here.gateway]
    if not gateways or rng.random() < 0.4:
        return []
    host, at_ms = rng.choice(gateways), _when(rng)
    faults: list[ClusterFault] = [Crash(host, at_ms=at_ms, lose=rng.choice(LOSSES))]
    if rng.random() < 0.7:
        faults.append(Boot(host, at_ms=at_ms + rng.uniform(5, 400)))
    return faults


def _cut_off(rng: Random, where: tuple[Whereabouts, ...]) -> list[ClusterFault]:
    """A whole site hears only itself for a while."""
    if rng.random() < 0.5:
        return []
    name, at_ms = rng.choice(where).site, _when(rng)
    inside: tuple[Host, ...] = tuple(h for h, here in enumerate(where) if here.site == name)
    back_ms = at_ms + rng.choice((30, 100, 300)) * rng.uniform(0.5, 1.5)
    return [PartitionHosts((inside,), at_ms=at_ms), Heal(at_ms=back_ms)]


def _when(rng: Random) -> float:
    return rng.uniform(FORMED_MS, FORMED_MS + CHURN_MS / 2)  # all is over when the calm begins
