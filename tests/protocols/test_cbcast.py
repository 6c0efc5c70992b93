"""Causal order across groups (001, "Causal Ordering" and "Overlapping Groups"; 004, 5.2)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from domains import AT_ONCE, CHAIN, RING, Groups, Overlap
from ordercast.core.events import Cut, Flush, Kept, Multicast, Receive, View
from ordercast.core.ids import GroupId
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited, Waiting
from ordercast.protocols import cbcast
from ordercast.protocols.cbcast import CausalData, Cbcast

ONE: Groups = {1: (1, 2, 3, 4)}
TWO: Groups = {1: (1, 2, 3), 2: (2, 3, 4)}


# -- the order -------------------------------------------------------------------------------------


def test_whoever_delivers_m3_delivers_m1_before_if_m1_happened_before_m3() -> None:
    o = Overlap(Cbcast, ONE)
    o.tell(1, 1, "m1")
    o.bring(1, 2)
    o.tell(2, 1, "m3")  # 2 has delivered m1
    o.bring(2, 3)
    assert o.texts(3) == []
    o.bring(1, 3)
    assert o.texts(3) == ["m1", "m3"]


def test_concurrent_messages_do_not_wait_for_each_other() -> None:
    o = Overlap(Cbcast, ONE)
    o.tell(1, 1, "m1")
    o.tell(2, 1, "m2")
    o.bring(2, 3)
    o.bring(1, 3)
    assert o.texts(3) == ["m2", "m1"]


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
def test_a_message_waits_for_all_that_its_sender_delivered(first: int, second: int) -> None:
    o = Overlap(Cbcast, ONE)
    o.tell(1, 1, "of 1")
    o.tell(2, 1, "of 2")
    o.bring(1, 3)
    o.bring(2, 3)
    o.tell(3, 1, "m")
    o.bring(3, 4)
    o.bring(first, 4)
    assert o.texts(4) == [f"of {first}"]  # one of two is not enough
    o.bring(second, 4)
    assert o.texts(4) == [f"of {first}", f"of {second}", "m"]


def test_every_process_in_both_groups_delivers_m_before_m_prime() -> None:
    o = Overlap(Cbcast, TWO)
    o.tell(1, 1, "m")
    o.bring(1, 2)
    o.tell(2, 2, "m'")
    o.bring(2, 3)
    assert o.texts(3) == []
    o.bring(2, 4)
    assert o.texts(4) == ["m'"]  # it is not in group 1: nothing to wait for
    o.bring(1, 3)
    assert o.texts(3) == ["m", "m'"]


def test_messages_of_one_sender_to_two_groups_stay_in_order_where_the_groups_meet() -> None:
    o = Overlap(Cbcast, TWO)
    o.tell(2, 1, "a")
    o.tell(2, 2, "b")
    o.tell(2, 1, "c")
    o.bring(2, 3, text="c")
    o.bring(2, 3, text="b")
    assert o.texts(3) == []
    o.bring(2, 3, text="a")
    assert o.texts(3) == ["a", "b", "c"]


def figure_3(o: Overlap[Cbcast]) -> list[str]:
    """p1 sends m1 in g1, p3 then m2 in g2, p6 then m3 in g3, p7 then m4 in g4: what p2 delivers."""
    o.tell(1, 1, "m1")
    o.bring(1, 3, text="m1")
    o.tell(3, 2, "m2")
    o.bring(3, 6, text="m2")
    o.tell(6, 3, "m3")
    o.bring(6, 7, text="m3")
    o.tell(7, 4, "m4")
    o.bring(7, 2, text="m4")
    o.bring(1, 2, text="m1")
    return o.texts(2)


def test_a_dependency_travels_round_a_ring_of_groups_through_those_of_others() -> None:
    o = Overlap(Cbcast, RING)
    assert figure_3(o) == ["m1", "m4"]
    assert o.header(CausalData, "m4", 7).changed == (1, 1, 1, 2, 3, 1, 3, 6, 1)


class OwnGroupsOnly(Cbcast):
    """A message tells of the groups that its sender is in, and of no others."""

    def changed_since_last(self, g: GroupId) -> tuple[int, ...]:
        told = cbcast.entries(super().changed_since_last(g))
        return tuple(x for entry in told if entry[0] in self.member_of for x in entry)


def test_to_carry_the_groups_of_the_sender_alone_is_not_enough_on_a_ring() -> None:
    assert figure_3(Overlap(OwnGroupsOnly, RING)) == ["m4", "m1"]


def test_to_carry_the_groups_of_the_sender_alone_is_enough_on_a_chain() -> None:
    for protocol in (Cbcast, OwnGroupsOnly):
        o = Overlap(protocol, CHAIN)
        o.tell(1, 1, "a")
        o.bring(1, 3)
        o.tell(3, 2, "b")
        o.bring(3, 5)
        o.tell(5, 2, "c")  # group 1 concerns none but 3 among those who get c, and 3 has a
        o.tell(5, 3, "d")
        o.bring(5, 4)
        assert o.texts(4) == []
        o.bring(3, 4)
        o.carry()
        assert o.texts(4) == ["b", "c"]
        assert o.texts(3) == ["a", "b", "c"]
        assert o.texts(6) == ["d"]


def test_what_is_known_of_an_own_group_counts_only_when_it_was_delivered_here() -> None:
    o = Overlap(Cbcast, TWO)
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 2, "b")
    o.bring(2, 4)
    o.tell(4, 2, "c")  # 4 tells of a, too
    o.bring(4, 3)
    o.bring(2, 3, text="b")
    assert o.texts(3) == []
    o.tell(3, 1, "d")  # 3 has heard of a, and delivered nothing
    assert o.header(CausalData, "d", 3).changed == ()


def test_an_older_entry_about_a_group_of_others_changes_nothing() -> None:
    o = Overlap(Cbcast, {1: (1, 2, 3), 2: (2, 4), 3: (3, 4)})
    o.tell(1, 1, "a", "b")
    o.bring(1, 2)
    o.tell(2, 2, "after b")
    o.bring(2, 4)
    o.bring(1, 3, text="a")
    o.tell(3, 3, "after a")
    o.bring(3, 4)
    o.tell(4, 3, "c")
    assert (1, 1, 2) in cbcast.entries(o.header(CausalData, "c", 4).changed)
    o.bring(4, 3)
    assert o.texts(3) == ["a", "after a"]
    o.bring(1, 3)
    assert o.texts(3) == ["a", "after a", "b", "c"]


# -- departures ------------------------------------------------------------------------------------


def test_cbcast_D1_a_sender_delivers_its_own_message_at_once_and_gets_no_copy() -> None:
    o = Overlap(Cbcast, ONE)
    o.tell(1, 1, "m")
    assert o.texts(1) == ["m"]
    assert not o.find(dst=1)


def test_cbcast_D2_a_message_that_is_held_back_has_caused_nothing_yet() -> None:
    o = Overlap(Cbcast, ONE)
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 1, "b")
    o.bring(2, 3)  # received, and held back
    o.tell(3, 1, "c")
    assert o.header(CausalData, "c", 3) == CausalData(1, 0, ())
    o.bring(3, 4)
    assert o.texts(4) == ["c"]


def test_cbcast_D3_a_frame_carries_what_changed_since_the_frame_before_in_the_same_group() -> None:
    o = Overlap(Cbcast, TWO)
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 1, "b")
    assert o.header(CausalData, "b", 2) == CausalData(1, 0, (1, 1, 1))
    o.tell(2, 1, "c")
    assert o.header(CausalData, "c", 2) == CausalData(2, 0, ())
    o.tell(2, 2, "d")  # nothing was told in group 2 yet
    assert o.header(CausalData, "d", 2) == CausalData(1, 0, (1, 1, 1, 1, 2, 2))


def test_cbcast_D3_an_entry_told_once_holds_for_all_later_frames_of_the_sender() -> None:
    o = Overlap(Cbcast, TWO)
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 2, "b", "c")  # b tells of a, c does not
    o.bring(2, 3, text="c")
    o.bring(2, 3, text="b")
    assert o.texts(3) == []
    o.bring(1, 3)
    assert o.texts(3) == ["a", "b", "c"]


def test_cbcast_D4_what_a_frame_of_the_same_group_told_is_not_told_again() -> None:
    o = Overlap(Cbcast, ONE)
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 1, "b")
    o.bring(1, 3)
    o.bring(2, 3)
    o.tell(3, 1, "c")  # after a and b; b tells of a
    assert o.header(CausalData, "c", 3).changed == (1, 2, 1)
    o.bring(3, 4)
    o.bring(2, 4)
    assert o.texts(4) == []
    o.bring(1, 4)
    assert o.texts(4) == ["a", "b", "c"]


def test_cbcast_D4_what_a_frame_of_another_group_told_is_told_again() -> None:
    o = Overlap(Cbcast, {1: (1, 2, 3), 2: (2, 4), 3: (3, 4)})
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 2, "b")
    o.bring(2, 4)
    o.tell(4, 3, "c")  # to 3, who never gets b
    assert o.header(CausalData, "c", 4).changed == (1, 1, 1, 2, 2, 1)
    o.bring(4, 3)
    assert o.texts(3) == []
    o.bring(1, 3)
    assert o.texts(3) == ["a", "c"]


def test_cbcast_D4_a_newer_number_than_the_one_told_is_told() -> None:
    o = Overlap(Cbcast, ONE)
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 1, "b")  # tells of a
    o.tell(1, 1, "a2")
    o.bring(1, 3)
    o.bring(2, 3)
    o.tell(3, 1, "c")  # after a2, which b does not tell of
    assert o.header(CausalData, "c", 3).changed == (1, 1, 2, 1, 2, 1)


def test_cbcast_D5_a_repeat_is_dropped_delivered_or_held_back() -> None:
    o = Overlap(Cbcast, ONE)
    o.tell(1, 1, "a", "b")
    o.repeat(*o.find(1, 2, text="b"), *o.find(1, 2, text="b"))
    o.repeat(*o.find(1, 2, text="a"))
    o.bring(1, 2)
    assert o.texts(2) == ["a", "b"]
    assert o.protocols[2].held_back() == []
    assert not o.faults


def test_cbcast_D6_all_vectors_restart_together_and_nothing_is_kept_of_the_groups_of_others() -> (
    None
):
    o = Overlap(Cbcast, RING)
    figure_3(o)
    assert o.protocols[7].foreign == 2
    o.cut(RING)
    for p in o.protocols:
        assert all(not any(V.values()) for V in o.protocols[p].VV.values())
        assert set(o.protocols[p].VV) == o.protocols[p].member_of
        assert o.protocols[p].foreign == 0
    o.tell(7, 4, "new")
    assert o.header(CausalData, "new", 7) == CausalData(1, 0, ())


def test_cbcast_D6_a_joiner_needs_nothing_from_before() -> None:
    o = Overlap(Cbcast, TWO)
    o.tell(1, 1, "old")
    o.bring(1, 2)
    o.cut({1: (1, 2, 3, 4), 2: (2, 3, 4)})
    o.tell(2, 1, "x")
    o.bring(2, 4)
    o.tell(4, 2, "y")
    o.bring(4, 3)
    assert o.story(3) == ["123", "234", "old", "1234"]  # x is missing
    o.bring(2, 3)
    assert o.story(3)[-2:] == ["x", "y"]
    assert "old" not in o.texts(4)


def lost_with_1() -> Overlap[Cbcast]:
    """a of 1 reaches 2 alone, which tells 3 of it by b; both crash."""
    o = Overlap(Cbcast, {1: (1, 2, 3, 4), 2: (2, 3, 4)})
    o.tell(1, 1, "a")
    o.bring(1, 2)
    return o


def test_cbcast_D7_what_depends_on_a_lost_message_of_the_same_group_is_dropped() -> None:
    o = lost_with_1()
    o.tell(2, 1, "b", "c")
    o.bring(2, 3)
    o.tell(3, 1, "d")
    o.crash(1, 2)
    o.cut({1: (3, 4), 2: (3, 4)})
    assert o.texts(3) == o.texts(4) == ["d"]


@pytest.mark.parametrize("length", [2, 3, 5])
def test_cbcast_D7_loss_is_followed_through_a_chain_of_causes_each_by_another_dead_member(
    length: int,
) -> None:
    """m1 is lost; each later one names only the one before. Survivors have all but the first."""
    dead, survivors = tuple(range(1, length + 2)), (8, 9)
    o = Overlap(Cbcast, {1: (*dead, *survivors)})
    for p in dead:
        if p > 1:
            o.bring(dst=p)
        o.tell(p, 1, f"m{p}")
    last = o.header(CausalData, f"m{length + 1}", length + 1)
    assert last.changed == (1, length, 1)
    for p in dead[1:]:
        o.bring(p, 8)
    o.crash(*dead)
    o.cut({1: survivors})
    assert o.texts(8) == o.texts(9) == []


def test_cbcast_D7_a_message_that_depends_on_a_lost_one_of_another_group_is_delivered() -> None:
    o = lost_with_1()
    o.tell(2, 2, "b")
    o.bring(2, 3)
    assert o.texts(3) == []  # it waits for a
    o.crash(1, 2)
    o.cut({1: (3, 4), 2: (3, 4)})
    assert o.texts(3) == o.texts(4) == ["b"]


def test_cbcast_D7_what_is_dropped_in_one_group_is_lost_for_the_others() -> None:
    o = lost_with_1()
    o.tell(2, 1, "b")  # dropped with a
    o.tell(2, 2, "c")  # depends on a and b
    o.bring(2, 3)
    o.crash(1, 2)
    o.cut({1: (3, 4), 2: (3, 4)})
    assert o.texts(3) == o.texts(4) == ["c"]


def test_a_group_that_begins_later_is_told_what_went_before() -> None:
    one = Cbcast(2, AT_ONCE)
    one.step([View(1, 1, (1, 2), 1), Multicast(1, b"a"), View(2, 1, (1, 2), 1)])
    (sent,) = one.step([Multicast(2, b"b")]).transmits
    assert sent[3] == CausalData(1, 0, (1, 2, 1))


def test_a_cut_delivers_in_causal_order_what_only_the_unions_complete() -> None:
    o = Overlap(Cbcast, {1: (1, 2, 3), 2: (2, 3, 4)})
    o.tell(4, 2, "a")
    o.bring(4, 2)
    o.tell(2, 1, "b")  # 3 needs a before b: group 2 must come before group 1
    o.cut({1: (1, 2, 3), 2: (2, 3, 4)})
    assert o.texts(3) == ["a", "b"]
    assert o.texts(1) == ["b"]
    assert o.texts(4) == ["a"]


# -- open groups -----------------------------------------------------------------------------------


def test_what_a_guest_heard_of_the_group_goes_before_what_it_sends_there() -> None:
    o = Overlap(Cbcast, {1: (1, 2, 3), 2: (3, 4)}, guests={1: (4,)})
    o.tell(1, 1, "a")
    o.bring(1, 3)
    o.tell(3, 2, "b")
    o.bring(3, 4)
    o.tell(4, 1, "c")
    o.bring(4, 2)
    assert o.texts(2) == []
    o.bring(1, 2)
    assert o.texts(2) == ["a", "c"]


# -- why is it held back ---------------------------------------------------------------------------


def test_a_held_frame_names_all_it_waits_for_across_groups() -> None:
    o = Overlap(Cbcast, TWO)
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 2, "b", "c")
    o.bring(2, 3, text="c")
    o.bring(2, 3, text="b")
    held = o.protocols[3].held_back()
    assert sorted(held) == [
        Waiting(2, 2, 1, (Awaited("frame", 1, 1, 1),), b"b"),
        Waiting(2, 2, 2, (Awaited("frame", 2, 2, 1),), b"c"),
    ]


class Counted(Cbcast):
    """Counts how often a frame is looked at."""

    looks = 0

    def awaited(self, g: GroupId, frame: Kept, missing: list[cbcast.Entry]) -> cbcast.Entry | None:
        self.looks += 1
        return super().awaited(g, frame, missing)


def test_a_held_frame_is_looked_at_when_it_comes_and_when_what_it_waits_for_was_delivered() -> None:
    o = Overlap(Counted, ONE)
    o.tell(1, 1, *(str(k) for k in range(100)))
    for packet in reversed(o.find(1, 2)):
        o.arrive(packet)
    assert o.texts(2) == [str(k) for k in range(100)]
    counted = o.protocols[2]
    assert isinstance(counted, Counted)
    assert counted.looks == 2 * 99  # the last to come is next in turn, and never held


# -- peers that do wrong ---------------------------------------------------------------------------

LIES: dict[str, tuple[CausalData, str]] = {
    "half an entry": (CausalData(1, 0, (1, 2)), "2 integers are no list of entries"),
    "a stranger": (CausalData(1, 0, (1, 9, 1)), "process 9 does not send in group 1"),
    "a frame of ours": (
        CausalData(1, 0, (1, 2, 5)),
        "our frame 5 in group 1 is named, but was not sent",
    ),
    "a frame of ours elsewhere": (
        CausalData(1, 0, (7, 2, 5)),
        "process 2 does not send in group 7",
    ),
    "far ahead": (CausalData(1, 0, (1, 3, 100)), "frame 100 of 3 is named, far above 0"),
    "no group": (CausalData(1, 0, (-1, 3, 1)), "process 3 does not send in group -1"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_cannot_be_is_a_fault_and_harms_nothing(lie: str) -> None:
    o = Overlap(Cbcast, ONE, options=Options(max_held=50))
    before = o.protocols[2].fingerprint()
    told, reason = LIES[lie]
    o.step(2, Receive(1, 1, 1, told, b"m"))
    assert o.faults == [(2, 1, reason)]
    assert o.protocols[2].fingerprint() == before
    assert o.texts(2) == []


def test_peers_cannot_make_us_keep_entries_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cbcast, "MAX_FOREIGN", 3)
    o = Overlap(Cbcast, ONE)
    flood = tuple(x for h in (7, 8, 9, 10) for x in (h, 5, 1))
    o.step(2, Receive(1, 1, 1, CausalData(1, 0, flood), b"m"))
    assert o.faults == [(2, 1, "more than 3 entries about groups of others")]
    assert o.texts(2) == []


IMPOSSIBLE = (
    Kept(1, 1, (1,), b"half an entry"),
    Kept(1, 1, (1, 9, 1), b"a stranger"),
    Kept(1, 1, (-1, 3, 1), b"no group"),
    Kept(9, 1, (), b"of a stranger"),
)


def test_a_cut_discards_frames_with_stamps_that_cannot_be() -> None:
    o = Overlap(Cbcast, ONE)
    o.step(2, Receive(1, 1, 1, CausalData(1, 0, (8, 5, 1)), b"first"))
    good = Kept(1, 2, (7, 5, 1), b"good")  # it tells of a group that was never heard of here
    view = o.protocols[2].views[1]
    o.step(2, Cut((Flush(1, (*IMPOSSIBLE, good)),), (replace(view, number=2, era=2),)))
    assert o.story(2) == ["1234", "first", "good", "1234"]
    assert o.protocols[2].foreign == 0


def test_a_leader_that_is_no_member_looks_at_the_form_of_stamps() -> None:
    outside = Cbcast(9)
    assert not any(outside.plausible(1, ONE[1], frame) for frame in IMPOSSIBLE)
    assert outside.plausible(1, ONE[1], Kept(1, 1, (7, 5, 1), b"good"))


def test_far_more_frames_in_a_group_of_others_than_may_be_held_are_no_fault() -> None:
    o = Overlap(Cbcast, {1: (1, 2), 2: (2, 3)}, options=Options(max_held=8, resilience=0))
    for number in range(20):
        o.tell(1, 1, f"a{number}")
        o.bring(1, 2)
    o.tell(2, 2, "b")
    o.bring(2, 3)
    for number in range(20, 40):
        o.tell(1, 1, f"a{number}")
        o.bring(1, 2)
    o.tell(2, 2, "c")
    o.bring(2, 3)
    assert o.texts(3) == ["b", "c"]
    assert o.faults == []
