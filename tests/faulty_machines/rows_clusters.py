"""Where faults in the membership of nodes show: a stage for each, over a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from faulty_machines import clusters
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.membership.cluster_headers import InstallView, PrepareView
from ordercast.membership.standing import ClusterOptions
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.fifo import Fifo
from ordercast.simulation.clustered import Boot, ClusterConfig, PartitionHosts
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.delays import Exponential
from ordercast.simulation.faults import Crash, Heal
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.workload import Workload
from ordercast.stack.clustered import ClusteredStack
from sweep.ambush import CrashOfWhoEndsAView, CutBeforeInstall

Protocol = type[OrderingProtocol]

TIMEOUT_MS = 100


class FaultyCluster(msgspec.Struct, frozen=True, kw_only=True):
    """One fault in the membership, and where it shows."""

    name: str
    rule: str  # that is left out
    breaks: tuple[str, ...]  # one of these is found
    stage: Callable[[Random], ClusterConfig]
    stack: type[ClusteredStack] = ClusteredStack
    protocol: Protocol = Fifo
    right: Protocol = Fifo
    seeds: int = 60

    def config(self, seed: int, *, faulty: bool) -> ClusterConfig:
        """The run that this seed gives, with the faulty machine or with the right one."""
        plain = self.stage(Random(f"{self.name} {seed}"))
        protocol, stack = (self.protocol, self.stack) if faulty else (self.right, ClusteredStack)
        return msgspec.structs.replace(plain, protocol=protocol, stack=stack, seed=seed)


def cluster(hosts: int, *faults: object, until_ms: float = 1500.0, **more: object) -> ClusterConfig:
    """A cluster in which things happen from 100 ms on."""
    fields = {
        "protocol": Fifo,
        "hosts": hosts,
        "messages": 16,
        "workload": Workload(every_us=2_000.0, start_ms=92, reply=0.5, depth=2),
        "network": NetworkModel(fifo=True),
        "faults": faults,
        "options": Options(retry_ms=20, gap_ms=20, status_ms=10, silence_ms=5, ack_delay_ms=2),
        "cluster": ClusterOptions(heartbeat_ms=20, suspect_ms=TIMEOUT_MS),
        "until_ms": until_ms,
        "rest_ms": 300.0,
    }
    return ClusterConfig(**{**fields, **more})  # type: ignore[arg-type]


def cut_when_prepared(rng: Random) -> ClusterConfig:
    """V6 leaves 1 out. All have prepared it; 0 installs it, and is cut off from 1, 3 and 4."""
    return cluster(
        5,
        PartitionHosts(((1,),), at_ms=rng.uniform(95, 110)),
        CutBeforeInstall(0, ((0, 2),), at_ms=120),
        Heal(at_ms=900),
    )


def crash_at_install(rng: Random) -> ClusterConfig:
    """One crashes; then the one who ends the view says INSTALL and crashes, and not all hear it."""
    first = Crash(rng.choice((2, 3, 4)), at_ms=rng.uniform(97, 105), lose=0.5)
    second = CrashOfWhoEndsAView(steps=0, at_ms=95, until_ms=300, lose=0.5, says=InstallView)
    slow = NetworkModel(fifo=True, delay=Exponential(200, 2000))
    return cluster(6, first, second, network=slow)


def crashes_of_two_coordinators(rng: Random) -> ClusterConfig:
    """One crashes, then the one who ends the view, then the next one who does."""
    first = Crash(4, at_ms=100)
    second = CrashOfWhoEndsAView(steps=1, at_ms=99, until_ms=300)
    third = CrashOfWhoEndsAView(steps=rng.randint(0, 2), at_ms=99, until_ms=300, says=PrepareView)
    return cluster(7, first, second, third)


def newcomers_on_a_small_side(rng: Random) -> ClusterConfig:
    """0 is cut off from 1 and 2, and lets in two others before it knows."""
    cut = PartitionHosts(((0, 3, 4),), at_ms=100)
    boots = [Boot(h, at_ms=100 + rng.uniform(1, 60)) for h in (3, 4)]
    return cluster(5, cut, *boots, Heal(at_ms=700), late=(3, 4))


def sides_that_merge(rng: Random) -> ClusterConfig:
    """Three sides go on, and come together again."""
    sides = PartitionHosts(((0, 1), (2,)), at_ms=rng.uniform(95, 110))
    merge = ClusterOptions(heartbeat_ms=20, suspect_ms=TIMEOUT_MS, partition="merge")
    return cluster(4, sides, Heal(at_ms=400), cluster=merge, until_ms=2500.0)


def overlapping_crash(rng: Random) -> ClusterConfig:
    """One speaks to both groups and crashes, its packets with it."""
    return cluster(
        4,
        Crash(3, at_ms=rng.uniform(97, 120), lose=0.7),
        groups=(GroupConfig(members=(0, 1, 3)), GroupConfig(members=(0, 1, 2, 3))),
        workload=Workload(
            senders=(3, 3, 1), every_us=1_500.0, burst=2, start_ms=92, reply=0.8, depth=3
        ),
        network=NetworkModel(fifo=False),
    )


def a_crash(rng: Random) -> ClusterConfig:
    """One crashes, and its connections break, at some nodes earlier than at others."""
    return cluster(5, Crash(rng.choice((1, 2)), at_ms=rng.uniform(100, 110)))


ROWS = (
    FaultyCluster(
        name="majority of the wrong view",
        rule="a view that somebody has prepared decides, too",
        breaks=("one primary side", "one view per number"),
        stage=cut_when_prepared,
        stack=clusters.JudgesByTheInstalledView,
    ),
    FaultyCluster(
        name="installed before all are ready",
        rule="INSTALL is said when all have the union",
        breaks=("nobody is driven out",),
        stage=crash_at_install,
        stack=clusters.InstallsBeforeAllAreReady,
    ),
    FaultyCluster(
        name="nobody finishes",
        rule="what somebody has installed, those who are ready finish first",
        breaks=("nobody is driven out",),
        stage=crash_at_install,
        stack=clusters.LetsNobodyFinish,
    ),
    FaultyCluster(
        name="joiners vote at once",
        rule="a view counts in votes when a majority of the one before has it",
        breaks=("one primary side",),
        stage=newcomers_on_a_small_side,
        stack=clusters.CountsJoinersAtOnce,
    ),
    FaultyCluster(
        name="attempts below what was promised",
        rule="an attempt has a number above all that were followed",
        breaks=("one view per number", "nothing is blocked"),
        stage=crashes_of_two_coordinators,
        stack=clusters.ForgetsWhatItPromised,
    ),
    FaultyCluster(
        name="two sides number alike",
        rule="numbers of views tell the sides apart",
        breaks=("views",),
        stage=sides_that_merge,
        stack=clusters.NumbersViewsAlike,
    ),
    FaultyCluster(
        name="the younger goes at once",
        rule="a suspicion counts when the suspect is silent here, too, or for long",
        breaks=("nobody is driven out",),
        stage=a_crash,
        stack=clusters.BelievesSuspicionsAtOnce,
    ),
    FaultyCluster(
        name="groups flushed one by one",
        rule="one flush is for all groups",
        breaks=("agreement", "vsync", "causal.global"),
        stage=overlapping_crash,
        stack=clusters.UnitesOneGroup,
        protocol=Cbcast,
        right=Cbcast,
    ),
)
