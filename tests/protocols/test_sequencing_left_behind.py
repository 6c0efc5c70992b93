"""The sequencing service with `bodies_stay`: a group moves, the bodies of its messages do not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bench.transfer import measure
from chances import Chances
from ordercast.core.events import Change, Cut, Flush, Receive, View
from ordercast.core.ids import ProcessId
from ordercast.core.protocol import Options
from ordercast.machinery.numbering import ViewEntry
from ordercast.machinery.sequencer_headers import Fetch
from ordercast.machinery.transfer import BookEntry, BookState, LeftEntry
from ordercast.membership.cluster_headers import CLUSTER_GROUP
from ordercast.membership.nodes import GroupEntry, NodeEntry
from ordercast.membership.placing_headers import Inherit, InheritLeft
from ordercast.membership.standing import ClusterOptions, Found, Installed
from ordercast.protocols.sequencing.headers import (
    AcceptedIn,
    AcceptIn,
    FetchFor,
    Former,
    Moved,
    Release,
)
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.runtime.options import NodeOptions
from ordercast.simulation.clustered import (
    ClusterConfig,
    ClusterSimulation,
    Depart,
    PartitionHosts,
    simulate_cluster,
)
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.costs import CostModel
from ordercast.simulation.faults import Heal
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.placing import MoveGroup
from ordercast.simulation.workload import Workload
from ordercast.stack.clustered import ClusteredStack
from ordercast.trace.oracle import judge
from sequencers import AT_ONCE, S, Served, T
from sweep.cluster_arenas import CLUSTERS
from sweep.cluster_oracle import run
from sweep.trial import cluster_found

ORDERS = [Sequencing, SequencingHybrid, SequencingCausal, SequencingGlobal]
every = pytest.mark.parametrize("protocol", ORDERS)
causal = pytest.mark.parametrize("protocol", [SequencingHybrid, SequencingCausal])
STAY = replace(AT_ONCE, bodies_stay=True)
MEMBERS = (1, 2, 3)
U = 7  # one more sequencer that is in no group


def served(
    leader: ProcessId = S, *, members: tuple[ProcessId, ...] = MEMBERS, options: Options = STAY
) -> Served:
    return Served(Sequencing, {1: (members, leader)}, others=(4, T, U), options=options)


def numbered(b: Served, *texts: str, lost: bool = True, leader: ProcessId = S) -> None:
    """2 said this, and the sequencer numbered it; nobody has it yet."""
    b.tell(2, 1, *texts)
    b.bring(2, leader)
    if lost:
        b.lose(leader, header=AcceptIn)


def finished(b: Served, *expected: str) -> None:
    """All is delivered by all, once, in this order; nobody was blamed, and no body is left."""
    b.settle()
    assert [b.texts(p) for p in MEMBERS if p not in b.crashed] == [list(expected)] * (
        len(MEMBERS) - len(b.crashed.intersection(MEMBERS))
    )
    assert b.faults == []
    assert not any(service.keeps_for_others(1) for service in b.services.values())


# -- what travels ---------------------------------------------------------------------------------


def test_numbers_travel_and_bodies_stay() -> None:
    b = served()
    b.change(S, Change(1, left=(3,)))
    numbered(b, "a")
    _, entries = b.freeze(1, S, T)
    (view, _), (left, body) = entries
    assert isinstance(view, BookEntry)
    assert view.view is not None
    assert (left, body) == (LeftEntry(2, 2, 1, (), S), b"")
    assert b.services[S].keeps_for_others(1)


def test_unless_it_is_asked_for_bodies_travel() -> None:
    b = served(options=AT_ONCE)
    numbered(b, "a")
    book = b.freeze(1, S, T)
    assert list(book[1]) == [(BookEntry(1, 2, 1, (), None), b"a")]
    b.succeed(1, T, book)
    b.tell_moved(1, S)
    assert not b.services[S].keeps_for_others(1)
    finished(b, "a")


def test_what_has_no_body_here_travels_on_without_it_whatever_is_asked_for_here() -> None:
    b = served()
    numbered(b, "a")
    b.move(1, S, T)
    b.services[T].parts[1].options = AT_ONCE
    _, entries = book = b.freeze(1, T, U)
    assert [entry for entry, _ in entries] == [LeftEntry(1, 2, 1, (), S)]
    b.succeed(1, U, book)
    b.tell_moved(1, T)
    assert not b.services[T].keeps_for_others(1)
    finished(b, "a")


def test_a_body_that_came_since_is_the_next_sequencers_to_hand_on() -> None:
    b = served()
    numbered(b, "a")
    b.move(1, S, 3)
    b.bring(S, header=Moved)
    b.ring(3, "gap", 1)
    b.bring(3, S, FetchFor)
    b.bring(S, 3, AcceptIn)
    b.services[3].parts[1].options = AT_ONCE
    _, entries = book = b.freeze(1, 3, T)
    assert list(entries) == [(BookEntry(1, 2, 1, (), None), b"a")]
    assert [p.header for p in b.find(3, S)] == [Release(1)]
    b.succeed(1, T, book)
    b.tell_moved(1, 3)
    finished(b, "a")


def test_the_option_of_a_node_reaches_its_groups() -> None:
    assert NodeOptions.given({"bodies_stay": True}).for_stack().bodies_stay
    assert not NodeOptions.given({}).for_stack().bodies_stay


# -- FETCH is forwarded ---------------------------------------------------------------------------


def test_who_has_the_body_answers_the_member_itself() -> None:
    b = served()
    numbered(b, "a", "b")
    b.move(1, S, T)
    b.bring(S, header=Moved)
    b.ring(T, "status", 1)
    b.bring(T, 3)
    b.ring(3, "gap", 1)
    b.bring(3, T, Fetch)
    assert [p.header for p in b.find(T, S)] == [FetchFor(3, 1, 2)]
    assert not b.find(T, 3, AcceptIn)
    b.bring(T, S)
    assert [p.receive.payload for p in b.find(S, 3, AcceptIn)] == [b"a", b"b"]
    b.bring(S, 3)
    assert b.texts(3) == ["a", "b"]
    finished(b, "a", "b")


def test_after_several_moves_each_who_has_some_is_asked_and_nobody_forwards_twice() -> None:
    b = served()
    numbered(b, "a")
    b.move(1, S, T)
    b.bring(S, header=Moved)
    numbered(b, "b", leader=T)
    b.move(1, T, U)
    b.bring(T, header=Moved)
    assert b.part(U, 1).elsewhere == {1: S, 2: T}
    b.ring(U, "status", 1)
    b.bring(U, 3)
    b.ring(3, "gap", 1)
    b.bring(3, U, Fetch)
    asked = {p.dst: p.header for p in b.find(U, header=FetchFor)}
    assert asked == {S: FetchFor(3, 1, 1), T: FetchFor(3, 2, 2)}
    b.bring(header=FetchFor)
    assert not b.find(header=FetchFor)
    finished(b, "a", "b")


@pytest.mark.parametrize("first", [Former, AcceptIn])
def test_a_member_that_does_not_know_who_numbered_before_is_told(first: type) -> None:
    """4 is let in by S; it hears of that from T, and has never heard of S."""
    b = served()
    b.change(S, Change(1, joined=(4,)))
    numbered(b, "a")
    b.lose(S, 4)
    b.move(1, S, T)
    b.lose(S, 4, Moved)
    b.ring(T, "status", 1)
    b.bring(T, 4, ViewEntry)
    b.bring(4, T)
    b.ring(T, "status", 1)
    b.bring(T, 4)
    b.ring(4, "gap", 1)
    b.bring(4, T, Fetch)
    b.bring(T, S, FetchFor)
    b.bring(*(T, 4, Former) if first is Former else (S, 4, AcceptIn))
    assert b.texts(4) == []
    b.bring(*(S, 4, AcceptIn) if first is Former else (T, 4, Former))
    assert b.texts(4) == ["a"]
    finished(b, "a")


def test_the_next_sequencer_asks_for_what_it_lacks_as_a_member() -> None:
    b = served()
    numbered(b, "a")
    b.tell(2, 1, "b")
    b.move(1, S, 3)
    b.bring(S, header=Moved)
    b.carry()
    assert b.texts(3) == []
    (waiting,) = b.services[3].held_back()
    assert [(awaited.process, awaited.number) for awaited in waiting.awaits] == [(S, 1)]
    b.ring(3, "gap", 1)
    assert [p.header for p in b.find(3, S)] == [FetchFor(3, 1, 1)]
    finished(b, "a", "b")


def test_a_repeated_request_gets_no_second_number() -> None:
    b = served()
    numbered(b, "a")
    b.move(1, S, T)
    b.bring(S, header=Moved)
    b.ring(2, "retry", 1)
    b.ring(2, "retry", 1)
    b.bring(2, T)
    finished(b, "a")


# -- bodies are released --------------------------------------------------------------------------


def test_when_all_have_them_the_bodies_are_released() -> None:
    b = served()
    numbered(b, "a", "b", lost=False)
    b.move(1, S, T)
    assert b.services[S].holdings(1).history == 2
    b.bring(S)
    for p in MEMBERS:
        assert not b.find(T, S, Release)
        b.bring(p, T)
    b.bring(T, S, Release(1))
    assert b.services[S].holdings(1).history == 0
    finished(b, "a", "b")


def test_what_the_next_sequencer_has_as_a_member_is_released_at_once() -> None:
    b = served()
    numbered(b, "a", lost=False)
    b.bring(S, 3)
    b.lose(S)
    b.move(1, S, 3)
    b.bring(3, S, Release)
    assert not b.services[S].keeps_for_others(1)
    b.bring(S)
    b.crash(S)
    finished(b, "a")


@pytest.mark.parametrize("protocol", [SequencingHybrid, SequencingCausal])
def test_what_the_next_sequencer_alone_has_got_is_not_released(
    protocol: type[SequencingService],
) -> None:
    """3 has a, and may have spoken of it in another group; S has left it, and T never had it."""
    b = Served(protocol, {1: ((2, 3), S)}, others=(T,), options=Options(bodies_stay=True))
    b.tell(2, 1, "a")
    b.bring(2, S)
    b.bring(S, 3)
    b.lose(S, 2)
    for source, to in ((S, T), (T, 3)):
        b.move(1, source, to)
    assert not b.find(3, S, Release) and b.services[S].keeps_for_others(1)
    b.part(3, 1).back_up(1, T)
    b.settle()
    assert b.texts(2) == b.texts(3) == ["a"]
    assert not b.services[S].keeps_for_others(1) and b.faults == []


def test_a_group_that_comes_back_finds_its_bodies_where_they_stayed() -> None:
    b = served()
    numbered(b, "a")
    b.move(1, S, T)
    b.move(1, T, S)
    assert b.part(S, 1).elsewhere == {}
    finished(b, "a")
    assert not b.find(header=FetchFor)


def test_a_late_release_is_not_about_bodies_that_stay_from_later_on() -> None:
    """3 has a, and releases S. The word is late: S numbers again, has a, and leaves it again."""
    b = served()
    numbered(b, "a", lost=False)
    b.bring(S, 3, AcceptIn)
    b.lose(S, header=AcceptIn)
    b.move(1, S, 3)
    b.move(1, 3, S)
    b.move(1, S, T)
    (late,) = b.find(3, S, Release)
    b.arrive(late)
    assert b.services[S].keeps_for_others(1)
    finished(b, "a")


# -- who may speak of what ------------------------------------------------------------------------


@causal
def test_who_left_a_body_behind_speaks_of_it_elsewhere_when_it_is_released(
    protocol: type[SequencingService],
) -> None:
    """Nobody but 1 has a. If 1 died after b, b would have been caused by nothing."""
    groups = {1: ((1, 2), 1), 2: ((1, 3), T)}
    b = Served(protocol, groups, others=(S,), options=Options(bodies_stay=True))
    b.tell(1, 1, "a")
    b.lose(1, 2)
    b.move(1, 1, S)
    b.tell(1, 2, "b")
    assert not b.find(text="b")
    b.settle()
    assert (b.texts(1), b.texts(2), b.texts(3)) == (["a", "b"], ["a"], ["b"])
    assert b.faults == []


def test_a_guest_is_not_told_that_a_member_has_what_no_member_has() -> None:
    """3 numbers the group and is alone in it; the body is with S."""
    b = Served(Sequencing, {1: ((3,), S)}, guests={1: (5,)}, others=(T,), options=STAY)
    b.tell(5, 1, "a")
    b.bring(5, S)
    b.flight.clear()
    b.move(1, S, 3)
    b.bring(S, 5, Moved)
    b.bring(5, 3)
    assert [p.header for p in b.find(3, 5)] == [AcceptedIn(1, 0, 1, 0)]
    b.settle()
    assert b.texts(3) == ["a"]
    assert b.stable[5] == 1


# -- the end of an era ----------------------------------------------------------------------------


def flush(b: Served) -> None:
    """All who live end the era of group 1 together, with what they have; T goes on numbering."""
    members = tuple(p for p in MEMBERS if p not in b.crashed)
    alive = [service for p, service in b.services.items() if p not in b.crashed]
    union = {(k.origin, k.n): k for service in alive for k in service.unstable(1)}
    lowest = min(b.services[p].numbers_delivered(1) for p in members)
    reach = Sequencing.reach(tuple(union.values()), lowest)
    before = b.services[T].views[1]
    view = View(1, before.number + 1, members, T, before.era + 1, last=reach.last)
    for p in (*members, T):
        flushes = (Flush(1, tuple(union.values())),) if p in members else ()
        b.step(p, Cut(flushes, (view,)))


def crash_after_a_move(leader: ProcessId, options: Options, *dead: ProcessId) -> Served:
    """1 said a, which reached the sequencer alone. The group moved, 1 said c, and 2 and 3 have that
    one. Then these die."""
    b = served(leader, options=options)
    b.tell(1, 1, "a")
    if leader != 1:
        b.bring(1, leader)
    b.lose(leader, header=AcceptIn)
    b.move(1, leader, T)
    b.bring(leader, header=Moved)
    b.tell(1, 1, "c")
    b.carry()
    b.tell(2, 1, "b")
    b.carry()
    b.crash(*dead)
    return b


def judged(b: Served) -> list[str]:
    """What is promised, and does not hold."""
    promises = (*Sequencing.declaration.promises, "wellformed", "views", "vsync")
    verdicts = judge(b.trace(), quiescent=True, only=promises)
    return [f"{name}: {v.violations}" for name, v in verdicts.items() if v.verdict == "violated"]


def test_a_number_without_its_body_is_not_reported_and_who_has_the_body_does() -> None:
    b = crash_after_a_move(S, STAY, 1)
    assert [kept.payload for kept in b.services[T].unstable(1)] == [b"c", b"b"]
    assert [kept.payload for kept in b.services[S].unstable(1)] == [b"a"]
    flush(b)
    b.settle()
    assert b.texts(2) == b.texts(3) == ["a", "c", "b"]
    assert judged(b) == []


def test_a_body_that_came_to_the_sequencer_as_a_member_is_reported() -> None:
    b = served()
    numbered(b, "a", "b")
    b.move(1, S, 3)
    b.bring(S, header=Moved)
    assert b.services[3].unstable(1) == ()
    b.ring(3, "gap", 1)
    b.bring(3, S, FetchFor)
    b.bring(S, 3, text="b")
    assert [kept.payload for kept in b.services[3].unstable(1)] == [b"b"]


@pytest.mark.parametrize("leader", [1, S], ids=["a member", "a daemon"])
def test_who_dies_with_a_body_takes_it_along_and_all_that_comes_after(leader: ProcessId) -> None:
    """The others agree all the same. What a survivor said is said again."""
    stories = []
    for options in (AT_ONCE, STAY):
        b = crash_after_a_move(leader, options, *{1, leader})
        flush(b)
        b.settle()
        assert judged(b) == []
        assert b.faults == []
        stories.append((b.texts(2), b.texts(3)))
    assert stories == [(["a", "c", "b"],) * 2, (["b"],) * 2]


def test_a_member_asks_in_vain_until_the_flush_that_ends_the_era() -> None:
    b = crash_after_a_move(S, STAY, S)
    b.go_on(rounds=5)
    assert b.texts(2) == b.texts(3) == []
    flush(b)
    assert b.part(T, 1).elsewhere == {}
    b.settle()
    assert b.texts(1) == b.texts(2) == b.texts(3)
    assert sorted(b.texts(1)) == ["a", "b", "c"]
    assert judged(b) == []


# -- chances --------------------------------------------------------------------------------------

SEEDS = (*range(12), 238)  # in 238 one that numbered is let in once more, and lacks what it left


@every
def test_whatever_happens_the_promises_are_kept(protocol: type[SequencingService]) -> None:
    for seed in SEEDS:
        chances = Chances(protocol, seed, bodies_stay=True)
        try:
            chances.run()
            assert chances.bench.faults == []
            assert chances.judged() == []
            parts = [part for s in chances.bench.services.values() for part in s.parts.values()]
            assert not any(part.left or part.elsewhere for part in parts)
        except Exception as error:
            error.add_note(f"{protocol.__name__}, seed {seed}")
            raise


@every
def test_a_cluster_in_which_nodes_crash_keeps_its_promises(
    protocol: type[SequencingService],
) -> None:
    arena = CLUSTERS["placing"]
    for seed in (1, 5):
        config = arena.config(protocol, seed)
        options = replace(config.options, bodies_stay=True)
        try:
            done = run(replace(config, options=options))
            assert cluster_found(done, arena.wanted(protocol)) == []
        except Exception as error:
            error.add_note(f"{protocol.__name__}, seed {seed}")
            raise


# -- in a cluster ---------------------------------------------------------------------------------

FORMED_MS, MOVE_MS, LOOK_MS, HEAL_MS = 300, 500, 560, 600
MESSAGES = 8


class Look(msgspec.Struct, frozen=True):
    """Somebody looks at the node of a host, which is about to ask for the group once more."""

    host: int
    at_ms: float
    seen: list[object]

    def apply(self, simulation: ClusterSimulation) -> None:
        machine: Any = simulation.machines[self.host]
        machine.open_group(machine.entries[1])
        _, frames = machine.report_groups()
        self.seen.extend((len(frames), machine.leads(1), machine.owes_nothing()))


def test_who_left_bodies_behind_stays_until_they_are_released_and_reports_them() -> None:
    """Host 2 is cut off for a moment and acknowledges nothing, when host 3 has handed over and is
    told to go."""
    seen: list[object] = []
    outcome = simulate_cluster(
        ClusterConfig(
            protocol=Sequencing,
            hosts=5,
            groups=(GroupConfig(members=(0, 1, 2)),),
            messages=MESSAGES,
            workload=Workload(senders=(0, 1), start_ms=MOVE_MS - 20, reply=0.0),
            network=NetworkModel(fifo=True),
            options=Options(bodies_stay=True),
            cluster=ClusterOptions(heartbeat_ms=20, suspect_ms=1000, balance=False),
            faults=(
                MoveGroup(1, 3, at_ms=FORMED_MS),
                PartitionHosts(((2,),), at_ms=MOVE_MS - 30),
                MoveGroup(1, 4, at_ms=MOVE_MS),
                Depart(3, at_ms=MOVE_MS + 20),
                Look(3, LOOK_MS, seen),
                Heal(at_ms=HEAL_MS),
            ),
        )
    )
    assert seen == [MESSAGES, True, False]
    assert outcome.quiescent
    assert not outcome.statistics.faults
    without = [
        ms
        for ms, _, news in outcome.simulation.story
        if isinstance(news, Installed) and ms > FORMED_MS and 3 not in news.view.pids
    ]
    assert min(without) > HEAL_MS


def test_a_peer_that_names_a_body_which_is_not_here_is_blamed() -> None:
    pages = {"sequencing": Sequencing}
    stack = ClusteredStack(NodeEntry(0, "p0", 1), pages, cluster_options=ClusterOptions())
    stack.step([Found()])
    group = GroupEntry(1, "g", "total", "sequencing", 0)
    nothing: tuple[()] = ()
    acks = ((5, 0),)
    state = BookState(
        1, 1, (5,), nothing, 1, acks, acks, nothing, nothing, nothing, nothing, (0, ()), nothing, 0,
        0, nothing, (1,), 1,
    )  # fmt: skip
    left = InheritLeft(0, 1, (LeftEntry(1, 5, 1, (), 0),))
    said = (Inherit(0, group, state, (1,)), left)
    out = stack.step([Receive(1, CLUSTER_GROUP, 0, header, b"") for header in said])
    assert out.faults == [(1, "it says that a body is here which is not")]


def test_the_measurement_moves_the_same_book_both_ways() -> None:
    costs = CostModel(receive_us=8.0, send_us=4.0)
    travel, stay = (measure(60, 1_000, costs, 0.05, stay=stay) for stay in (False, True))
    assert travel.entries == stay.entries == 60
    assert travel.bytes > 60 * 1_000 > stay.bytes > 0
    assert travel.forwarded == 0
