"""Words of the sequencing service that have no answer: what is under way is not said again."""

from __future__ import annotations

import pytest

from machines import Bench, G, bench
from ordercast.core.events import Consumed
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.protocols.sequencing.headers import Ack, Fetch, Marks, Request
from ordercast.protocols.sequencing.orders import Sequencing, SequencingHybrid

PROMPT = Options(ack_every=1, driver_consumes=True)


@pytest.fixture(params=[Sequencing, SequencingHybrid])
def order(request: pytest.FixtureRequest) -> type[OrderingProtocol]:
    return request.param  # type: ignore[no-any-return]


def group(order: type[OrderingProtocol], *members: int, options: Options = PROMPT) -> Bench:
    """Members of a group that 1 numbers; all have begun."""
    b = bench(order, *members, options=options)
    for p in members:
        if (G, "ack") in b.timers[p]:
            b.ring(p, "ack")
    b.carry()
    return b


def taken(b: Bench, p: int, frames: int = 1) -> None:
    b.step(p, Consumed(G, frames))
    if (G, "ack") in b.timers[p]:
        b.ring(p, "ack")


def acks(b: Bench) -> list[Ack]:
    return [packet.header for packet in b.find(2, 1, Ack)]  # type: ignore[misc]


def test_a_report_that_is_under_way_is_not_sent_again_for_marks(
    order: type[OrderingProtocol],
) -> None:
    b = group(order, 1, 2)
    b.say(1, "m")
    b.bring(1, 2)
    taken(b, 2)
    before = acks(b)
    b.ring(1, "behind")
    b.bring(1, 2, Marks)  # they crossed
    assert acks(b) == before
    assert before[-1] == Ack(1, 1)


def test_a_lost_report_is_repeated_by_who_sent_it_and_answered(
    order: type[OrderingProtocol],
) -> None:
    b = group(order, 1, 2)
    b.say(2, "m")
    b.carry()
    taken(b, 1)
    taken(b, 2)
    b.lose(2, 1, Ack)
    b.ring(2, "repeat")  # in this period the message has come
    b.ring(2, "repeat")
    b.bring(2, 1, Ack(1, 1))
    b.settle()
    assert b.stable[2] == 1


def test_the_last_word_on_what_is_stable_may_be_lost(order: type[OrderingProtocol]) -> None:
    b = group(order, 1, 2)
    b.say(2, "m")
    b.carry()
    taken(b, 1)
    taken(b, 2)
    b.bring(2, 1, Ack)
    b.ring(1, "status")
    b.lose(1, 2, Marks)
    assert b.stable[2] == 0
    b.ring(2, "repeat")  # in this period the message has come
    b.ring(2, "repeat")
    b.carry()
    assert b.stable[2] == 1


def test_the_sequencer_waits_longer_for_reports_that_come_late(
    order: type[OrderingProtocol],
) -> None:
    b = group(order, 1, 2)
    b.say(1, "m")
    first = b.timers[1][G, "behind"]
    b.ring(1, "behind")
    assert b.timers[1][G, "behind"] == 2 * first
    b.carry()
    taken(b, 2)
    b.carry()
    b.ring(1, "behind")
    b.say(1, "n")
    assert b.timers[1][G, "behind"] == 2 * first


def test_requests_are_not_repeated_while_others_of_the_sender_get_through(
    order: type[OrderingProtocol],
) -> None:
    b = group(order, 1, 2, options=Options())
    b.say(2, "a")
    b.carry()
    b.say(2, "b")
    b.ring(2, "retry")
    assert len(b.find(2, 1, Request)) == 1
    b.lose(2, 1, Request)
    b.ring(2, "retry")
    assert len(b.find(2, 1, Request)) == 1  # nothing was heard of it for a whole period
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


def test_a_number_that_is_known_only_for_a_moment_is_not_fetched(
    order: type[OrderingProtocol],
) -> None:
    b = group(order, 1, 2)
    b.say(1, "a", "b")
    b.bring(1, 2, text="b")
    b.bring(1, 2, text="a")
    b.say(1, "c", "d")
    b.bring(1, 2, text="d")
    b.ring(2, "gap")  # started for number 1, which has come; 3 may be on its way
    assert not b.find(2, 1, Fetch)
    b.ring(2, "gap")
    assert [packet.header for packet in b.find(2, 1, Fetch)] == [Fetch(3, 3)]


def test_on_a_network_that_loses_nothing_no_word_is_ever_repeated(
    order: type[OrderingProtocol],
) -> None:
    options = Options(ack_every=1, driver_consumes=True, lossy=False)
    b = group(order, 1, 2, options=options)
    b.say(1, "m")
    b.say(2, "n")
    names = {name for timers in b.timers.values() for _, name in timers}
    assert not names & {"retry", "behind", "repeat", "gap"}
