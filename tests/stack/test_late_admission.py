"""A sequencer dies: its word comes late, or a request comes early to the next one."""

from __future__ import annotations

import pytest

from machines import Bench
from ordercast.core.events import Multicast
from ordercast.machinery.numbering import ViewEntry
from ordercast.membership.cluster_headers import InstallView
from ordercast.membership.standing import Ask, Broken
from ordercast.protocols.sequencing.headers import DoMulticast
from ordercast.protocols.sequencing.orders import Sequencing, SequencingHybrid
from ordercast.protocols.sequencing.service import SequencingService
from placings.scene import Group, Scene, entry_of, first_stacks


@pytest.mark.parametrize("protocol", [Sequencing, SequencingHybrid])
def test_nobody_is_let_in_by_a_sequencer_that_was_excluded(
    protocol: type[SequencingService],
) -> None:
    stacks = first_stacks(Scene(protocol, (1, 2, 3), {1: Group((1, 2), 2)}, ()))
    entry = entry_of(1, protocol)
    b = Bench(dict(stacks))
    stacks[3].open_group(entry)
    b.step(3, Ask(entry, "member"))  # type: ignore[arg-type]
    b.bring(3, 1)
    b.bring(1, 2)
    late = b.find(2, 3, ViewEntry)
    b.flight.clear()
    b.crash(2)
    b.step(1, Broken(2))  # type: ignore[arg-type]
    while not b.find(1, 3, ViewEntry):  # it asks the next coordinator, who lets it in
        b.arrive(b.flight[0])
    for packet in late:
        b.step(3, packet.receive)
    b.carry()
    b.step(3, Multicast(1, b"m"))
    b.carry()
    assert b.texts(1) == b.texts(3) == ["m"]
    assert b.faults == []


@pytest.mark.parametrize("protocol", [Sequencing, SequencingHybrid])
def test_nobody_is_let_into_a_group_that_ended_with_the_node_view(
    protocol: type[SequencingService],
) -> None:
    """3 is the first in the group. Word of that is late: a flush comes before it, at which nobody
    says that he is in."""
    stacks = first_stacks(Scene(protocol, (1, 2, 3, 4), {}, (), daemons=(4,)))
    entry = entry_of(1, protocol)
    b = Bench(dict(stacks))
    stacks[3].open_group(entry)
    b.step(3, Ask(entry, "member"))  # type: ignore[arg-type]
    while not (late := b.find(header=ViewEntry)):
        b.arrive(b.flight[0])
    b.flight = [packet for packet in b.flight if packet not in late]
    b.crash(2)
    b.step(1, Broken(2))  # type: ignore[arg-type]
    while not (anew := b.find(header=ViewEntry)):  # it asks once more
        b.arrive(b.flight[0])
    assert anew[0].receive.era > late[0].receive.era
    for packet in late:
        b.step(3, packet.receive)
    b.carry()
    b.step(3, Multicast(1, b"m"))
    b.carry()
    assert b.texts(3) == ["m"]
    assert b.faults == []


def test_a_request_that_overtakes_the_word_to_begin_is_numbered_all_the_same() -> None:
    """1 and 2 are members; 3 numbers and dies; 4, which knew nothing of the group, is next."""
    places = Scene(Sequencing, (1, 2, 3, 4), {1: Group((1, 2), 3)}, (), daemons=(3, 4))
    stacks = first_stacks(places)
    b = Bench(dict(stacks))
    b.crash(3)
    b.step(1, Broken(3))  # type: ignore[arg-type]
    while not b.find(1, 4, InstallView):
        b.arrive(b.flight[0])
    install = b.find(1, 4, InstallView)
    b.flight = [packet for packet in b.flight if packet not in install]
    b.step(1, Multicast(1, b"m"))
    b.bring(1, 4, DoMulticast)
    assert stacks[4].entry_of(1) is not None
    b.step(4, *(packet.receive for packet in install))
    b.carry()
    assert b.texts(1) == b.texts(2) == ["m"]
    assert b.faults == []
