"""Who was cut off has dropped packets. The view that ends this begins all groups anew, whoever
coordinates in the end."""

from __future__ import annotations

import pytest

from ordercast.core.events import Timer
from ordercast.membership.agreement_table import Standing
from ordercast.process.commands import Broken, Connected
from ordercast.process.process import CLUSTER_GROUP
from ordercast.protocols.registry import PROTOCOLS
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Stop
from tests.fuzzing.few_nodes import FewNodes

IN_GROUP = (3, 4)


class CutOff(FewNodes):
    """Node 4 hears nobody for a while; the others do not notice. Then all hear each other again."""

    def tick(self):
        for p in sorted(self.nodes):
            self.step(p, Timer(CLUSTER_GROUP, "tick"))

    def cut_off_while(self, something):
        for q in (0, 1, 2, 3):
            self.step(4, Broken(q))
        for _ in range(8):
            self.step(4, Timer(CLUSTER_GROUP, "tick"))
        assert self.nodes[4].agreement.standing is Standing.CUT_OFF
        self.flight.clear()
        something()
        self.carry()
        for q in (0, 1, 2, 3):
            self.step(4, Connected(q, f"n{q}"))

    def until_stopped(self):
        """Until node 3 is told to stop the group: the view that begins anew is in force."""
        for _ in range(40):
            self.tick()
            while self.flight:
                if self.flight[0][0] == 3 and isinstance(self.flight[0][1].header, Stop):
                    return
                self.step(*self.flight.pop(0))
        raise AssertionError("no view began anew")


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("protocol", ["cbcast", "sequencer_pb", "sequencing", "fifo"])
def test_what_was_dropped_comes_also_if_the_coordinator_dies_before_the_groups_began_anew(
    protocol, dies
):
    """It was in no group, so its death alone would not have touched this one."""
    order = PROTOCOLS[protocol].declaration.order
    cluster = CutOff(5, GroupEntry(1, "g", order, protocol, 0), IN_GROUP)
    cluster.cut_off_while(lambda: cluster.say(3, b"first"))
    assert not cluster.delivered[4]
    cluster.until_stopped()
    if dies:
        cluster.flight = [(p, x) for p, x in cluster.flight if x.src != 0]
        cluster.kill(0)
    for _ in range(30):
        cluster.carry()
        cluster.tick()
    cluster.say(3, b"second")
    cluster.carry()
    assert cluster.delivered[4] == [b"first", b"second"]
    assert not cluster.faults
