"""What the authors of TOTAL wished for ("Future Improvements" of 003), with and without it."""

from __future__ import annotations

from faulty_machines.totals import ClearsTheQueue, SaysNoStatus
from machines import Bench, G, bench
from ordercast.core.events import Cut, Flush, View
from ordercast.core.protocol import Options
from ordercast.experiments.variants import TotalWithConstantLimits
from ordercast.machinery.numbering import Numbered, Numbering
from ordercast.machinery.total_headers import Bcast, Resend
from ordercast.protocols.javagroups import JavaGroupsTotal
from ordercast.trace.oracle import verdicts

Protocol = type[JavaGroupsTotal]


def machine(b: Bench, p: int) -> JavaGroupsTotal:
    found = b.machines[p]
    assert isinstance(found, JavaGroupsTotal)
    return found


# -- "The protocol does not currently handle MERGE events" -----------------------------------------


class SupposesACommonPast(JavaGroupsTotal):
    """Takes every sender for one whose messages it has counted from the first on."""

    def number(self, g: int, book: Numbering, frame: Numbered, first: int) -> None:
        super().number(g, book, frame, 1)


def merge(protocol: Protocol) -> Bench:
    """Two groups, each with a past and with a message that has no number, become one."""
    b = Bench({p: protocol(p) for p in (1, 2, 3, 4)})
    for side, era in (((1, 2), 4), ((3, 4), 7)):
        for p in side:
            b.step(p, View(G, era, side, side[0], era))
    b.say(2, "a1")
    b.say(4, "b1", "b2", "b3")
    b.settle()
    b.say(2, "a2")
    b.say(4, "b4")  # neither comes to its sequencer
    b.say(3, "b5")
    b.bring(3, 4, Bcast)  # one of the two sides has something to flush
    late = list(b.flight)
    b.flight.clear()
    merged = View(G, 8, (1, 2, 3, 4), 1, 8)
    for side in ((1, 2), (3, 4)):
        union = tuple({kept for p in side for kept in machine(b, p).unstable(G)})
        for p in side:
            b.step(p, Cut((Flush(G, union),), (merged,)))
    b.say(3, "b6")
    b.repeat(*late)  # what was under way in the old views is void
    b.go_on()
    return b


def test_two_groups_merge_into_one_view_with_a_new_sequencer_and_first_number() -> None:
    b = merge(JavaGroupsTotal)
    after = [b.story(p)[b.story(p).index("1234") + 1 :] for p in (1, 2, 3, 4)]
    assert after[0] == after[1] == after[2] == after[3]
    assert sorted(after[0]) == ["a2", "b4", "b6"]
    assert b.story(1)[:-3] == b.story(2)[:-3] == ["12", "a1", "1234"]
    assert b.story(3)[:-3] == b.story(4)[:-3] == ["34", "b1", "b2", "b3", "b5", "1234"]
    found = verdicts(b.trace())
    wanted = ("no_duplication", "fifo.group", "total.group", "validity")
    assert {name: found[name] for name in wanted} == dict.fromkeys(wanted, "ok")


def test_without_it_the_other_sides_messages_are_never_numbered() -> None:
    b = merge(SupposesACommonPast)
    assert "b4" not in b.texts(1) and "a2" not in b.texts(1)  # held: "n = 1 comes first"
    assert verdicts(b.trace())["validity"] == "violated"


# -- "Another enhancement would involve the addition of a flush protocol" --------------------------


def sequencer_dies(protocol: Protocol) -> Bench:
    """It dies when one of two survivors has its last message, and the other has not."""
    b = bench(protocol, 1, 2, 3)
    b.carry()
    b.say(1, "a", "b")
    b.bring(1, 2, Bcast)
    b.crash(1)
    b.flight.clear()
    union = tuple({kept for p in (2, 3) for kept in machine(b, p).unstable(G)})
    for p in (2, 3):
        b.step(p, Cut((Flush(G, union),), (View(G, 2, (2, 3), 2, 2),)))
    b.settle()
    return b


def test_a_flush_delays_the_view_until_all_members_are_synchronized() -> None:
    b = sequencer_dies(JavaGroupsTotal)
    assert b.story(2) == b.story(3) == ["123", "a", "b", "23"]
    assert verdicts(b.trace())["vsync"] == "ok"


def test_without_it_total_order_holds_only_for_a_prefix() -> None:
    b = sequencer_dies(ClearsTheQueue)
    assert (b.texts(2), b.texts(3)) == (["a", "b"], [])
    assert verdicts(b.trace())["vsync"] == "violated"


# -- "does not know if there is a suffix of messages that needs to be retransmitted" ---------------


def suffix_is_lost(protocol: Protocol) -> Bench:
    """The last three messages do not come to 2."""
    b = bench(protocol, 1, 2)
    b.carry()
    b.say(1, "a", "b", "c", "d")
    for text in ("b", "c", "d"):
        b.lose(1, 2, text=text)
    b.go_on()
    return b


def test_a_member_actively_requests_a_lost_suffix() -> None:
    assert suffix_is_lost(JavaGroupsTotal).texts(2) == ["a", "b", "c", "d"]


def test_without_it_a_lost_suffix_stays_lost() -> None:
    assert suffix_is_lost(SaysNoStatus).texts(2) == ["a"]


# -- "a windowed resend request structure with intelligent backoff" --------------------------------


LONG_GAP, PERIODS = 200, 100


def outage(protocol: type[JavaGroupsTotal] = JavaGroupsTotal) -> tuple[int, Bench]:
    """2 misses many numbers, and for a long time nothing that it says comes to the sequencer."""
    b = bench(protocol, 1, 2, options=Options(resend_window=16))
    b.carry()
    b.say(1, *(f"m{i}" for i in range(LONG_GAP + 1)))
    b.flight = b.flight[-1:]
    b.carry()
    asked = 0
    for _ in range(PERIODS):
        b.ring(2, "resend")
        asked += len(b.find(2, 1, Resend))
        b.flight.clear()
    return asked, b


def test_a_window_with_back_off_asks_seldom_while_nobody_answers() -> None:
    asked, b = outage()
    assert asked == 16 * 10  # of sixteen numbers each at 0, 1, 3, 7, 15, 31, 47, 63, 79, 95
    b.settle()
    assert len(b.texts(2)) == LONG_GAP + 1


def test_with_constant_limits_an_outage_is_filled_with_requests() -> None:
    asked, b = outage(TotalWithConstantLimits)
    assert asked == 16 * PERIODS
    b.settle()
    assert len(b.texts(2)) == LONG_GAP + 1


def test_when_the_outage_ends_the_gap_is_closed_within_a_few_periods() -> None:
    _, b = outage()
    assert periods_to_close(b) <= 16  # the first answer ends the back-off, each moves the window
    _, b = outage(TotalWithConstantLimits)
    assert periods_to_close(b) == -(-LONG_GAP // 16)


def periods_to_close(b: Bench) -> int:
    periods = 0
    while len(b.texts(2)) < LONG_GAP + 1:
        b.ring(2, "resend")
        b.carry()
        periods += 1
    return periods
