"""Where faults of a node show: a stage for each, over a few seeds. Faults of the sequencing service
that show only when groups change are here, too."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from faulty_machines import clusters, sequencing
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.membership.agreement_headers import InstallView
from ordercast.membership.options import ClusterOptions
from ordercast.process.process import Process
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.sequencing.orders import Sequencing
from ordercast.simulation.clustered import ClusterConfig, PartitionHosts
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.delays import Exponential, LogNormal
from ordercast.simulation.faults import Crash, Heal, Join, Leave
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.workload import Workload
from ordercast.views.headers import Install, Plan, Ready, Report
from sweep.ambush import CrashOfWhoSays, CutBefore

Protocol = type[OrderingProtocol]

TIMEOUT_MS = 100
OPTIONS = Options(retry_ms=20, gap_ms=20, status_ms=10, silence_ms=5, ack_delay_ms=2)


class FaultyCluster(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a node or of its protocol, and where it shows."""

    name: str
    rule: str  # that is left out
    breaks: tuple[str, ...]  # one of these is found
    stage: Callable[[Random], ClusterConfig]
    source: str = ""  # an erratum, or a tempting reading
    process: type[Process] = Process
    protocol: Protocol = Fifo
    right: Protocol = Fifo
    seeds: int = 60

    def config(self, seed: int, *, faulty: bool) -> ClusterConfig:
        """The run that this seed gives, with the faulty machine or with the right one."""
        plain = self.stage(Random(f"{self.name} {seed}"))
        protocol, process = (self.protocol, self.process) if faulty else (self.right, Process)
        return msgspec.structs.replace(plain, protocol=protocol, process=process, seed=seed)


def cluster(hosts: int, *faults: object, until_ms: float = 1500.0, **more: object) -> ClusterConfig:
    """A cluster in which things happen from 100 ms on."""
    fields = {
        "protocol": Fifo,
        "hosts": hosts,
        "messages": 16,
        "workload": Workload(every_us=2_000.0, start_ms=92, reply=0.5, depth=2),
        "network": NetworkModel(fifo=True),
        "faults": faults,
        "options": OPTIONS,
        "cluster": ClusterOptions(heartbeat_ms=20, suspect_ms=TIMEOUT_MS, refound_ms=400),
        "until_ms": until_ms,
        "rest_ms": 300.0,
    }
    return ClusterConfig(**{**fields, **more})  # type: ignore[arg-type]


def cut_at_install(rng: Random) -> ClusterConfig:
    """A view leaves 1 out. 0 and 2 hear that it is decided, and are cut off from 3 and 4."""
    return cluster(
        5,
        PartitionHosts(((1,),), at_ms=rng.uniform(95, 110)),
        CutBefore(0, InstallView, ((0, 2),), at_ms=120),
        Heal(at_ms=900),
    )


def two_sides(rng: Random) -> ClusterConfig:
    """Two of five are cut off for a while."""
    return cluster(5, PartitionHosts(((3, 4),), at_ms=rng.uniform(95, 110)), Heal(at_ms=600))


def crash_at_a_change(rng: Random) -> ClusterConfig:
    """One crashes; then the one that leads the change of the groups does, as it says INSTALL."""
    first = Crash(rng.choice((2, 3, 4)), at_ms=rng.uniform(97, 105), lose=0.5)
    second = CrashOfWhoSays(Install, steps=0, at_ms=95, until_ms=400, lose=0.7)
    slow = NetworkModel(fifo=True, delay=Exponential(200, 2000))
    return cluster(6, first, second, network=slow)


def cut_at_a_change(rng: Random) -> ClusterConfig:
    """1 leaves a group of 0 and 1, and joins again. When 0 says what comes next, the two are cut
    off from 2, 3, 4, which have no part in that group."""
    return cluster(
        5,
        Leave(1, 1, at_ms=rng.uniform(100, 120)),
        Join(1, 1, at_ms=130),
        CutBefore(0, Plan, ((0, 1),), at_ms=99),
        Heal(at_ms=700),
        groups=(GroupConfig(members=(0, 1)), GroupConfig(members=(2, 3, 4))),
    )


def sender_crash(rng: Random) -> ClusterConfig:
    """One that speaks much crashes, and what it said last comes to some, and late."""
    slow = NetworkModel(delay=Exponential(200, 6000))
    return cluster(
        5,
        Crash(3, at_ms=rng.uniform(97, 120), lose=0.5),
        workload=Workload(
            senders=(3, 3, 1), every_us=700.0, burst=2, start_ms=92, reply=0.8, depth=3
        ),
        network=slow,
    )


def crash_after_a_report(rng: Random) -> ClusterConfig:
    """One leaves; another speaks much, reports what it holds, and crashes. What it said last comes
    to some, and late: after these have reported, too."""
    return cluster(
        5,
        Leave(2, 1, at_ms=rng.uniform(97, 105)),
        CrashOfWhoSays(Report, steps=0, at_ms=95, until_ms=200, lose=0.5),
        workload=Workload(every_us=300.0, start_ms=92, reply=0.8, depth=3),
        messages=40,
        network=NetworkModel(delay=Exponential(200, 4000)),
    )


def sides_that_merge(rng: Random) -> ClusterConfig:
    """Three sides go on, and come together again."""
    sides = PartitionHosts(((0, 1), (2,)), at_ms=rng.uniform(95, 110))
    merge = ClusterOptions(
        heartbeat_ms=20, suspect_ms=TIMEOUT_MS, partition="merge", refound_ms=400
    )
    return cluster(4, sides, Heal(at_ms=400), cluster=merge, until_ms=2500.0)


def cut_when_ready(rng: Random) -> ClusterConfig:
    """2 is about to come into the group of 0, 1 and 3. 3 is ready, and cut off, with frames that
    the others lack. They cannot finish; then another node comes in, under the same number."""
    merge = ClusterOptions(
        heartbeat_ms=20, suspect_ms=TIMEOUT_MS, partition="merge", refound_ms=400
    )
    return cluster(
        5,
        Join(2, 1, at_ms=rng.uniform(100, 120)),
        CutBefore(3, Ready, ((3,),), at_ms=99),
        Join(4, 1, at_ms=rng.uniform(125, 150)),
        Heal(at_ms=700),
        groups=(GroupConfig(members=(0, 1, 3)), GroupConfig(members=(2, 4))),
        messages=60,
        workload=Workload(senders=(1, 1, 0, 8, 0), every_us=300.0, start_ms=98),
        network=NetworkModel(fifo=True, delay=Exponential(200, 4000)),
        cluster=merge,
        until_ms=2500.0,
    )


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
    """One crashes, and no connection tells: all find out by its silence, at different times."""
    crash = Crash(rng.choice((1, 2)), at_ms=rng.uniform(100, 120))
    return cluster(5, crash, network=NetworkModel(delay=Exponential(200, 3000)))


def join_second_group(rng: Random) -> ClusterConfig:
    """Host 3 is in the first group and comes into the second."""
    groups = (GroupConfig(members=(0, 1, 3)), GroupConfig(members=(0, 1)))
    return overlapping(rng, groups, Join(3, 2, at_ms=rng.uniform(97, 115)))


def overlapping(rng: Random, groups: tuple[GroupConfig, ...], *faults: object) -> ClusterConfig:
    """Groups that share members; much is said while one of them changes."""
    return cluster(
        4,
        *faults,
        groups=groups,
        messages=40,
        workload=Workload(every_us=400.0, start_ms=94, reply=0.8, depth=3),
        network=NetworkModel(connections=True, delay=LogNormal(1000, 1.5)),
        cluster=ClusterOptions(heartbeat_ms=20, suspect_ms=5 * TIMEOUT_MS, refound_ms=400),
        until_ms=4000.0,
    )


ROWS = (
    FaultyCluster(
        name="decides alone",
        rule="more than half of the voters must have accepted a view",
        breaks=("one primary side", "one view per id"),
        stage=two_sides,
        process=clusters.NodeThatDecidesAlone,
    ),
    FaultyCluster(
        name="forgets what it accepted",
        rule="what may have been decided is proposed again, unchanged",
        breaks=("one primary side", "one view per id"),
        stage=cut_at_install,
        process=clusters.NodeThatForgetsWhatItAccepted,
    ),
    FaultyCluster(
        name="the younger goes at once",
        rule="a suspicion counts when the suspect is silent here, too, or for long",
        breaks=("nobody is driven out",),
        stage=a_crash,
        process=clusters.NodeThatBelievesSuspicions,
    ),
    FaultyCluster(
        name="two sides number alike",
        rule="numbers of views tell the sides apart",
        breaks=("views",),
        stage=sides_that_merge,
        process=clusters.NodeThatNumbersViewsAlike,
    ),
    FaultyCluster(
        name="installed before all are ready",
        rule="INSTALL is said when all have what they lacked",
        breaks=("agreement", "vsync"),
        stage=sender_crash,
        process=clusters.NodeThatInstallsTooEarly,
    ),
    FaultyCluster(
        name="changes without witnesses",
        rule="a majority of the voters is ready for a change before it is installed",
        breaks=("views", "one view per id"),
        stage=cut_at_a_change,
        process=clusters.NodeThatCallsNoWitnesses,
    ),
    FaultyCluster(
        name="nobody finishes",
        rule="what all are ready for is installed: one that died may have shown it",
        breaks=("views", "vsync"),
        stage=crash_at_a_change,
        process=clusters.NodeThatFinishesNothing,
    ),
    FaultyCluster(
        name="a side finishes what others gave up",
        rule="where every side goes on, a change that was only prepared is void",
        breaks=("views",),
        stage=cut_when_ready,
        process=clusters.NodeThatFinishesWhatOthersGaveUp,
    ),
    FaultyCluster(
        name="taken after the report",
        rule="what comes after the report, and was not reported, is void",
        breaks=("agreement", "vsync"),
        stage=crash_after_a_report,
        process=clusters.NodeThatTakesWhatComesAfterItsReport,
    ),
    FaultyCluster(
        name="said after the report",
        rule="between STOP and INSTALL nothing is sent",
        breaks=("agreement", "vsync", "validity"),
        stage=sender_crash,
        process=clusters.NodeThatSpeaksAfterItsReport,
    ),
    FaultyCluster(
        name="groups flushed one by one",
        rule="one change is for all groups that hang together",
        breaks=("agreement", "vsync", "causal.global"),
        stage=overlapping_crash,
        process=clusters.NodeThatUnitesOneGroup,
        protocol=Cbcast,
        right=Cbcast,
    ),
    FaultyCluster(
        name="sequencing: a joiner holds nothing",
        source="E-K15",
        rule="one that is about to be let in holds what names its group",
        breaks=("total.pairwise",),
        stage=join_second_group,
        protocol=sequencing.AdmitsWithoutHolding,
        right=Sequencing,
    ),
)
