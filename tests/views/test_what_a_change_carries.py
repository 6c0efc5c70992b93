"""What a change of a group costs while its senders are at full speed: what is everywhere does not
travel again, and there are not more words because more frames wait."""

from __future__ import annotations

from collections import Counter

import pytest

from ordercast.core.events import Receive
from ordercast.process.process import CLUSTER_GROUP
from ordercast.protocols.registry import PROTOCOLS
from ordercast.views.flush import FLUSH_HEADERS
from ordercast.views.groups import GroupEntry
from tests.fuzzing.few_nodes import FewNodes

SIZE = 1000  # bytes of a message
FEW, MANY = 5, 100  # messages of each node that lives, none of which is stable


class Metered(FewNodes):
    """Four nodes. It notes which bodies are brought to whom, and the words of changes."""

    def __init__(self, protocol):
        declaration = PROTOCOLS[protocol].declaration
        self.brought, self.words = Counter(), Counter()
        super().__init__(4, GroupEntry(1, "g", declaration.order, protocol, 0))

    def step(self, p, event):
        if isinstance(event, Receive) and len(event.payload) >= SIZE:
            self.brought[p, event.payload] += 1
        before = len(self.flight)
        super().step(p, event)
        for _, packet in self.flight[before:]:
            if packet.group == CLUSTER_GROUP or type(packet.header) in FLUSH_HEADERS:
                self.words[type(packet.header).__name__] += 1

    def flood(self, silent, each):
        """The others send, while that node neither hears nor says anything."""
        frozen = self.nodes.pop(silent)
        for number in range(each):
            for p in self.nodes:
                self.say(p, body(p, number))
            self.carry()
        self.nodes[silent] = frozen

    def exclude(self, dead):
        """The next view is without it."""
        self.words.clear()
        self.brought.clear()
        self.kill(dead)
        for node in self.nodes.values():
            assert node.rows[1].members == tuple(self.nodes)
        assert not self.faults


def body(p, number):
    return f"{p} {number} ".encode().ljust(SIZE)


def flooded(protocol, silent, each):
    cluster = Metered(protocol)
    cluster.flood(silent, each)
    cluster.exclude(silent)
    for p in cluster.nodes:
        assert len(cluster.delivered[p]) == each * len(cluster.nodes)
    return cluster


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_when_a_silent_member_goes_nothing_that_the_others_have_travels_again(protocol):
    cluster = flooded(protocol, silent=3, each=MANY)
    assert not cluster.brought


@pytest.mark.parametrize("silent", [0, 3], ids=["the coordinator", "another"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_change_takes_as_many_words_however_many_frames_wait(protocol, silent):
    few, many = (flooded(protocol, silent, each).words for each in (FEW, MANY))
    for words in (few, many):  # one for each body that is missing somewhere
        del words["FetchFrames"], words["FrameBody"]
    assert few == many


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_the_dead_one_told_to_one_alone_is_brought_to_each_of_the_others_once(protocol):
    cluster = Metered(protocol)
    said = [body(0, number) for number in range(FEW)]
    for m in said:
        cluster.say(0, m)
        cluster.flight = [(q, packet) for q, packet in cluster.flight if q == 1]
        cluster.carry()
    lacking = {(q, m) for q in (1, 2, 3) for m in said} - {*cluster.brought}
    cluster.exclude(0)
    for p in cluster.nodes:
        assert sorted(cluster.delivered[p]) == said
    assert cluster.brought == Counter(lacking)
