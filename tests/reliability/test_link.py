"""Links: from any network to one that loses, repeats and reorders nothing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.events import Receive
from ordercast.errors import PeerError
from ordercast.reliability.link import MAX_LACKS, Link, LinkAck, Linked, Packet


class Word(msgspec.Struct, frozen=True):
    """What is carried."""

    n: int


def received(packet: Packet) -> Receive:
    group, era, header, payload = packet
    return Receive(1, group, era, header, payload)


def words(packets: list[Receive]) -> list[int]:
    return [packet.header.n for packet in packets if isinstance(packet.header, Word)]


def pair(ack_every: int = 100, window: int = 1000) -> tuple[Link, Link]:
    return Link(ack_every, window), Link(ack_every, window)


def send(link: Link, *numbers: int) -> list[Packet]:
    return [link.wrap(7, 3, Word(n), str(n).encode()) for n in numbers]


steps = st.lists(
    st.tuples(st.sampled_from(["say", "arrive", "repeat", "lose", "ack", "again"]), st.randoms()),
    max_size=60,
)


@given(steps)
def test_whatever_the_network_does_every_packet_arrives_once_in_the_order_of_sending(
    script: list[tuple[str, object]],
) -> None:
    ends = pair()
    flight: list[tuple[int, Packet | LinkAck]] = []  # (to which end, what)
    sent: list[list[int]] = [[], []]
    got: list[list[int]] = [[], []]

    def arrive(to: int, what: Packet | LinkAck) -> None:
        if isinstance(what, LinkAck):
            ends[to].told(what)
        else:
            got[to] += words(ends[to].receive(received(what)))

    for what, random in script:
        end = random.randrange(2)  # type: ignore[attr-defined]
        if what == "say":
            sent[end].append(len(sent[end]))
            flight += [(1 - end, p) for p in send(ends[end], sent[end][-1])]
        elif what == "ack":
            flight.append((1 - end, ends[end].acknowledge()))
        elif what == "again":
            flight += [(1 - end, p) for p in ends[end].stalled(3)]
        elif flight:
            i = random.randrange(len(flight))  # type: ignore[attr-defined]
            if what != "lose":
                arrive(*flight[i])
            if what != "repeat":
                del flight[i]
        for p in (0, 1):
            assert got[p] == sent[1 - p][: len(got[p])]
    for _ in range(2 * len(script) + 4):  # from now on the network is kind
        for end in (0, 1):
            for packet in ends[end].stalled(100):
                arrive(1 - end, packet)
            arrive(1 - end, ends[end].acknowledge())
    assert got == [sent[1], sent[0]]
    assert all(not link.unacked for link in ends)


def test_what_is_carried_comes_out_as_it_went_in() -> None:
    here, there = pair()
    (packet,) = send(here, 5)
    assert there.receive(received(packet)) == [Receive(1, 7, 3, Word(5), b"5")]


def test_a_packet_carries_the_acknowledgement_of_the_other_direction() -> None:
    here, there = pair()
    for packet in send(here, 1, 2):
        there.receive(received(packet))
    (answer,) = send(there, 9)
    assert isinstance(answer[2], Linked)
    assert answer[2].ack == 2
    here.receive(received(answer))
    assert here.unacked == {}
    assert there.owed == 0


def test_an_acknowledgement_of_its_own_is_due_after_so_many_packets() -> None:
    here, there = pair(ack_every=2)
    one, two = send(here, 1, 2)
    there.receive(received(one))
    assert not there.must_acknowledge()
    there.receive(received(two))
    assert there.must_acknowledge()
    assert there.acknowledge() == LinkAck(2)
    assert not there.must_acknowledge()


def test_a_packet_behind_a_gap_is_not_acknowledged() -> None:
    here, there = pair()
    _, second = send(here, 1, 2)
    there.receive(received(second))
    assert there.acknowledge() == LinkAck(0, (1,), 2)


def numbers(packets: list[Packet]) -> list[int]:
    return [header.s for _, _, header, _ in packets if isinstance(header, Linked)]


def with_gaps() -> tuple[Link, Link]:
    """Of six packets two and five came."""
    here, there = pair()
    packets = send(here, *range(1, 7))
    for packet in (packets[1], packets[4]):
        there.receive(received(packet))
    return here, there


def test_an_acknowledgement_alone_says_which_packets_lack() -> None:
    _, there = with_gaps()
    assert there.acknowledge() == LinkAck(0, (1, 3, 4), 5)


def test_what_the_peer_has_is_not_transmitted_again() -> None:
    here, there = with_gaps()
    here.told(there.acknowledge())
    here.stalled(10)
    assert numbers(here.stalled(10)) == [1, 3, 4, 6]


def test_what_was_sent_since_the_last_look_is_not_transmitted_again() -> None:
    here, _ = pair()
    send(here, 1, 2)
    here.stalled(10)
    send(here, 3, 4)
    assert numbers(here.stalled(10)) == [1, 2]
    assert numbers(here.stalled(10)) == [1, 2, 3, 4]


def test_the_oldest_is_transmitted_again_whatever_the_peer_said() -> None:
    here, _ = pair()
    send(here, 1, 2, 3)
    here.told(LinkAck(0, (2,), 3))  # 1 came, and the word that said so did not
    here.stalled(10)
    assert numbers(here.stalled(10)) == [1, 2]


def test_a_packet_does_not_stand_in_for_the_word_on_what_lacks() -> None:
    _, there = with_gaps()
    send(there, 9)
    assert there.owed == 2


def test_no_more_than_a_few_gaps_are_told() -> None:
    here, there = pair()
    for packet in send(here, *range(1, 4 * MAX_LACKS))[1::2]:
        there.receive(received(packet))
    word = there.acknowledge()
    assert word.lacks == tuple(range(1, 2 * MAX_LACKS, 2))
    assert word.top == 4 * MAX_LACKS - 2


@pytest.mark.parametrize("word", [LinkAck(0, (1,), 4), LinkAck(0, (1,) * (MAX_LACKS + 1), 2)])
def test_a_word_on_packets_that_were_not_sent_or_on_too_many_is_the_peers_fault(
    word: LinkAck,
) -> None:
    here, _ = pair()
    send(here, 1, 2, 3)
    with pytest.raises(PeerError, match="3 were sent"):
        here.told(word)
    assert (here.lacks, here.top) == ((), 0)


def test_numbers_that_were_never_sent_are_not_transmitted() -> None:
    here, _ = pair()
    send(here, 1, 2, 3)
    here.told(LinkAck(0, (-7, 0, 99, 2), 3))
    here.stalled(10)
    assert numbers(here.stalled(10)) == [1, 2]


def test_a_repeat_is_acknowledged_again_because_the_first_answer_was_lost() -> None:
    here, there = pair()
    (packet,) = send(here, 1)
    there.receive(received(packet))
    there.acknowledge()
    assert there.receive(received(packet)) == []
    assert there.owed == 1


def test_nothing_is_transmitted_again_while_there_is_progress() -> None:
    here, _ = pair()
    send(here, 1, 2, 3)
    assert here.stalled(10) == []  # the first look
    here.acknowledged(1)
    assert here.stalled(10) == []  # it moved
    assert [p[2].s for p in here.stalled(10)] == [2, 3]  # type: ignore[attr-defined]
    assert here.repeats == 1
    here.acknowledged(3)
    assert (here.stalled(10), here.repeats) == ([], 0)


def test_no_more_than_asked_for_is_transmitted_again_the_oldest_first() -> None:
    here, _ = pair()
    send(here, *range(5))
    here.stalled(2)
    assert [p[2].s for p in here.stalled(2)] == [1, 2]  # type: ignore[attr-defined]


def test_a_packet_beyond_the_window_is_the_peers_fault_and_is_not_kept() -> None:
    here, there = pair(window=2)
    packets = send(here, 1, 2, 3)
    with pytest.raises(PeerError, match="more than 2 above 0"):
        there.receive(received(packets[2]))
    assert there.ahead == {}
    assert [words(there.receive(received(p))) for p in packets] == [[1], [2], [3]]


def test_acknowledging_what_was_not_sent_is_the_peers_fault() -> None:
    here, _ = pair()
    send(here, 1)
    with pytest.raises(PeerError, match="only 1 were sent"):
        here.acknowledged(2)
    assert list(here.unacked) == [1]
