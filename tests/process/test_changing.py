"""Who waits for a node that does not answer: one that is late may stay while nobody does."""

from __future__ import annotations

import msgspec
import pytest

from ordercast.process.commands import Join, Leave
from ordercast.views.headers import Installed, Ready, Report
from tests.fuzzing.few_nodes import GROUP, FewNodes

LATE = 1  # the node whose words do not come


class WithoutWordsOf(FewNodes):
    """From some time on, words of one kind from node `LATE` are under way for ever."""

    lost: type[msgspec.Struct] | None = None

    def carry(self):
        kept = []
        while self.flight:
            p, packet = self.flight.pop(0)
            if packet.src == LATE and type(packet.header) is self.lost:
                kept.append((p, packet))
            else:
                self.step(p, packet)
        self.flight = kept


@pytest.mark.parametrize(("word", "waits"), [(Report, True), (Ready, True), (Installed, False)])
def test_nobody_waits_to_hear_that_a_change_is_installed(word, waits):
    made = WithoutWordsOf(3)
    made.lost = word
    made.step(2, Leave(1))
    made.carry()
    assert made.nodes[0].changes.waits_for() == (LATE,)
    assert made.nodes[0].is_changing == waits


def test_the_next_change_waits_for_the_last_one():
    made = WithoutWordsOf(3)
    made.lost = Installed
    made.step(2, Leave(1))
    made.carry()
    made.step(2, Join(msgspec.structs.replace(GROUP, gid=2, name="h"), "member"))
    made.carry()
    assert made.nodes[0].is_changing
