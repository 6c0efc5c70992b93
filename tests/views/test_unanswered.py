"""A member that lives, is heard and does not answer holds up changes for a while, not for ever."""

from __future__ import annotations

import msgspec
import pytest

from ordercast.core.events import Receive
from ordercast.membership.options import ClusterOptions
from ordercast.process.process import Process
from ordercast.protocols.registry import PROTOCOLS
from ordercast.reliability.link import Linked
from ordercast.simulation.clustered import Boot, ClusterConfig
from ordercast.simulation.config import GroupConfig
from ordercast.views.changes import HOLD_UP
from ordercast.views.headers import Install, Plan, Stop
from sweep.cluster_oracle import cluster_complaints, run, settled_view

DEAF = 1  # the process; whoever starts at its host after it hears well
LATE = 3  # the host that comes
COMES_MS = 300.0
CLUSTER = ClusterOptions(heartbeat_ms=20, suspect_ms=100)


def deaf_to(kind: type[msgspec.Struct]) -> type[Process]:
    """A node that never hears such a packet about the newcomer, and is well otherwise."""

    class Deaf(Process):
        def _receive(self, packet: Receive) -> None:
            header = packet.header.header if isinstance(packet.header, Linked) else packet.header
            comes = len(self.agreement.pids) == 4
            if not (self.me == DEAF and comes and isinstance(header, kind)):
                super()._receive(packet)

    return Deaf


def a_node_comes(process: type[Process], protocol: str) -> ClusterConfig:
    """To a group with the deaf member, and to one of the others."""
    return ClusterConfig(
        protocol=PROTOCOLS[protocol],
        hosts=4,
        groups=(GroupConfig(members=(0, 1, 2, 3)), GroupConfig(members=(2, 3))),
        late=(LATE,),
        faults=(Boot(LATE, at_ms=COMES_MS),),
        messages=20,
        cluster=CLUSTER,
        process=process,
    )


@pytest.mark.parametrize("kind", [Stop, Plan, Install])
@pytest.mark.parametrize("protocol", ["fifo", "sequencing"])
def test_who_does_not_answer_in_a_change_is_given_up(
    protocol: str, kind: type[msgspec.Struct]
) -> None:
    done = run(a_node_comes(deaf_to(kind), protocol))
    first = min(ms for ms, _, view in done.installed if ms > COMES_MS and DEAF not in view.pids)
    assert first > COMES_MS + HOLD_UP * CLUSTER.suspect_ms
    assert [what for what, _ in cluster_complaints(done)] == ["nobody is driven out"]  # as it is
    assert len(settled_view(done).nodes) == 4  # it came back, as another process


def test_nobody_is_given_up_who_answers() -> None:
    done = run(a_node_comes(Process, "fifo"))
    assert set(done.installed[-1][2].pids) == {0, 1, 2, 3}
    assert cluster_complaints(done) == []
