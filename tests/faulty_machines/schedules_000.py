"""Schedules for the sequencing service (000). S and T are sequencers that are in no group."""

from __future__ import annotations

from faulty_machines import sequencing as wrong
from faulty_machines.directed import Directed, Protocol
from ordercast.protocols.sequencing.headers import Accept, Answer
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.service import SequencingService
from sequencers import Placed, S, Served, T


def served(protocol: Protocol, groups: Placed, **more: object) -> Served:
    """The machines of a schedule."""
    assert issubclass(protocol, SequencingService)
    return Served(protocol, groups, **more)  # type: ignore[arg-type]


def overtaken_request(protocol: Protocol) -> Served:
    """The second request of 1 overtakes the first."""
    b = served(protocol, {1: ((1, 2), S)})
    b.tell(1, 1, "a", "b")
    b.bring(1, S, text="b")
    b.settle()
    return b


def lost_accept(protocol: Protocol) -> Served:
    """The number of a does not come to 2."""
    b = served(protocol, {1: ((1, 2), S)})
    b.tell(1, 1, "a")
    b.bring(1, S)
    b.lose(S, 2)
    b.go_on()
    return b


def other_sequencer(protocol: Protocol) -> Served:
    """S numbers one group and T the other: contexts of one say nothing of the other."""
    b = served(protocol, {1: ((1, 2), S), 2: ((1, 3), T)})
    b.tell(2, 1, "a")
    b.carry()
    b.tell(3, 2, "b")
    b.go_on()
    return b


def settled_group(protocol: Protocol) -> Served:
    """S numbers both groups. What all have delivered of one is not named in the other."""
    b = served(protocol, {1: ((1, 2), S), 2: ((1, 3), S)})
    b.tell(2, 1, "a")
    b.settle()
    b.tell(3, 2, "b")
    b.go_on()
    return b


def further_than_the_sender(protocol: Protocol) -> Served:
    """2 speaks in group 2 when it has a and not b of group 1; 1 has both."""
    b = served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), T)})
    b.tell(3, 1, "a", "b")
    b.bring(3, S)
    b.bring(S, 1)
    b.bring(S, 2, text="a")
    b.tell(2, 2, "c")
    b.go_on()
    return b


def triangle(protocol: Protocol) -> Served:
    """Three groups of two, three messages; what a member says comes to itself first."""
    apart = {1: ((1, 2), 1), 2: ((2, 3), 2), 3: ((3, 1), 3)}
    together = {g: (members, S) for g, (members, _) in apart.items()}
    b = served(protocol, together if protocol is SequencingGlobal else apart)
    for p in (1, 2, 3):
        b.tell(p, p, f"m{p}")
    b.settle()
    return b


def late_accept(protocol: Protocol) -> Served:
    """Directed case C5. Guest 5 says a to group 1; what answers b, the next there, comes to it
    before it hears the number of a."""
    groups = {1: ((1, 2), S), 2: ((5, 2), T), 3: ((5, 1), T)}
    b = served(protocol, groups, guests={1: (5,)})
    b.tell(5, 1, "a")
    b.bring(5, S)
    b.bring(S, 1, Accept)
    b.tell(2, 1, "b")
    b.bring(2, S)
    b.bring(S, 2, Accept)
    b.ring(2, "ack", 1)
    b.bring(2, S)
    late = b.of_group(1, S, 5, Answer)
    b.tell(2, 2, "c")
    b.bring(2, T, text="c")
    b.bring(T, 5)
    b.arrive(*late)
    b.tell(5, 3, "d")
    b.bring(5, T, text="d")
    b.bring(T, 1)
    b.settle()
    return b


def crossing(protocol: Protocol) -> Served:
    """Directed case C4: 1 says m1 and m2, 2 says m3 and m4, in two groups; each sequencer numbers
    the second message of one first."""
    b = served(protocol, {1: ((1, 2), S), 2: ((1, 2), T)})
    b.tell(1, 1, "m1")
    b.tell(1, 2, "m2")
    b.tell(2, 2, "m3")
    b.tell(2, 1, "m4")
    for text in ("m4", "m1", "m2", "m3"):
        b.arrive(*(packet for packet in b.find(text=text)))
    b.go_on()
    return b


def foreign_id(protocol: Protocol) -> Served:
    """3 is not in the group of the frame before."""
    b = served(protocol, {1: ((1, 2), S), 2: ((1, 3), T)})
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    b.go_on()
    return b


def leavers(protocol: Protocol) -> Served:
    """1 and 2 leave group 3, in which a is held back at 2: it comes after x, which 2 lacks. Then b
    comes in another group of both."""
    b = served(protocol, {1: ((1, 2), S), 2: ((1, 2), S), 3: ((1, 2, 3), S)})
    b.tell(1, 2, "x")
    b.bring(1, S)
    b.bring(S, 1)
    b.lose(S, 2)
    b.tell(3, 3, "a")
    b.bring(3, S)
    b.bring(S, text="a")
    coming = b.end({3: ((3,), S)})
    b.prepare(coming)
    b.install(coming)
    b.tell(1, 1, "b")
    b.bring(1, S, text="b")
    b.bring(S, 2, Accept, "b")
    b.settle()
    return b


def received_and_not_delivered(protocol: Protocol) -> Served:
    """2 has all but a, so c of group 3 waits there; then d of group 2 comes."""
    groups = {1: ((1, 2), S), 2: ((1, 2), S), 3: ((1, 2), S)}
    b = served(protocol, groups)
    b.tell(1, 1, "a")
    b.bring(1, S)
    b.bring(S, 1)
    b.lose(S, 2, text="a")
    b.tell(1, 3, "c")
    b.bring(1, S, text="c")
    b.bring(S, 1, text="c")
    b.bring(S, 2, text="c")
    for p in (1, 2):
        b.ring(p, "ack", 3)
    b.carry()
    b.tell(1, 2, "d")
    b.settle()
    return b


def early_message(protocol: Protocol) -> Served:
    """3 is let into group 2. What comes after a message there overtakes the word that lets it in,
    and so does that message."""
    b = served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), S)})
    coming = b.end({2: ((1, 2, 3), S)})
    b.prepare(coming)
    b.install(coming, S, 1, 2)
    b.tell(1, 2, "a")
    b.bring(1, S, text="a")
    b.bring(S, 1)
    b.tell(1, 1, "b")
    b.bring(1, S, text="b")
    b.bring(S, 3, Accept, "b")
    b.install(coming, 3)
    b.settle()
    return b


def repeat_after_a_move(protocol: Protocol) -> Served:
    """Guest 5 hears nothing of its number before the group moves, and asks the next sequencer."""
    b = served(protocol, {1: ((1, 2), S)}, guests={1: (5,)}, others=(T,))
    b.tell(5, 1, "a")
    b.bring(5, S)
    for p in (1, 2):
        b.bring(S, p)
    b.bring(1, S)
    b.lose(S, 5)
    b.change({1: ((1, 2), T)})
    b.go_on()
    return b


def body_left_behind(protocol: Protocol) -> Served:
    """No member has a when the group is handed over; then the former sequencer stops."""
    b = served(protocol, {1: ((1, 2), S)}, others=(T,))
    b.tell(1, 1, "a")
    b.bring(1, S)
    b.lose(S, 1)
    b.lose(S, 2)
    b.change({1: ((1, 2), T)})
    b.crash(S)
    b.go_on()
    return b


ROWS = (
    Directed(
        name="E-K1",
        breaks="fifo.group",
        wrong=wrong.NumbersOnArrival,
        right=Sequencing,
        schedule=overtaken_request,
    ),
    Directed(
        name="E-K2",
        breaks="agreement",
        wrong=wrong.KeepsNoHistory,
        right=Sequencing,
        schedule=lost_accept,
    ),
    Directed(
        name="E-K3",
        breaks="agreement",
        wrong=wrong.WaitsForTheSameSet,
        right=Sequencing,
        schedule=settled_group,
    ),
    Directed(
        name="E-K4",
        breaks="agreement",
        wrong=wrong.WaitsForTheSameSet,
        right=Sequencing,
        schedule=other_sequencer,
    ),
    Directed(
        name="E-K5",
        breaks="validity",
        wrong=wrong.WaitsForTheSameNumbers,
        right=SequencingCausal,
        schedule=further_than_the_sender,
    ),
    Directed(
        name="E-K7",
        breaks="total.global",
        wrong=wrong.PairwiseCalledGlobal,
        right=SequencingGlobal,
        schedule=triangle,
    ),
    Directed(
        name="E-K8",
        breaks="causal.global",
        wrong=wrong.OwnAcceptLowersTheContext,
        right=SequencingHybrid,
        schedule=late_accept,
    ),
    Directed(
        name="E-K9",
        breaks="agreement",
        wrong=wrong.WaitsForForeignIds,
        right=SequencingHybrid,
        schedule=foreign_id,
    ),
    Directed(
        name="E-K11",
        breaks="validity",
        wrong=wrong.NamesIds,
        right=SequencingHybrid,
        schedule=crossing,
    ),
    Directed(
        name="E-K15",
        breaks="total.pairwise",
        wrong=wrong.AdmitsWithoutHolding,
        right=Sequencing,
        schedule=early_message,
    ),
    Directed(
        name="5.4 foreign groups in D",
        breaks="agreement",
        wrong=wrong.MergesForeignGroups,
        right=SequencingCausal,
        schedule=early_message,
    ),
    Directed(
        name="5.6 received",
        breaks="total.pairwise",
        wrong=wrong.ForgetsWhatAllReceived,
        right=Sequencing,
        schedule=received_and_not_delivered,
    ),
    Directed(
        name="5.8 split at once",
        breaks="total.pairwise",
        wrong=wrong.SplitsAtOnce,
        right=Sequencing,
        schedule=leavers,
    ),
    Directed(
        name="5.9 no requests",
        breaks="no_duplication",
        wrong=wrong.HandsOverNoRequests,
        right=Sequencing,
        schedule=repeat_after_a_move,
    ),
    Directed(
        name="5.9 no bodies",
        breaks="validity",
        wrong=wrong.HandsOverNoBodies,
        right=Sequencing,
        schedule=body_left_behind,
    ),
)
