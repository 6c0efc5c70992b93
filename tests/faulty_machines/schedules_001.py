"""Schedules for the errata of the slides (001)."""

from __future__ import annotations

from domains import RING, Overlap
from faulty_machines import (
    across_groups,
    agreements,
    majorities,
    negative_acks,
    sequenced,
    unsequenced,
)
from faulty_machines.directed import Directed, Protocol
from machines import Bench, bench
from ordercast.core.events import Flush, View
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.protocols.agreed import Agreed, AgreedOrder, Proposed
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.global_fifo import GlobalFifo
from ordercast.protocols.nak import NakMulticast
from ordercast.protocols.reliable import Reliable
from ordercast.protocols.sequencer_bb import SequencerBB
from ordercast.protocols.sequencer_pb import SequencerPB
from ordercast.protocols.uniform import Uniform
from ordercast.protocols.vector import CausalVector


def crash_after_delivery(protocol: Protocol) -> Bench:
    """1 delivers its own a and stops; what it handed over by then still arrives."""
    b = bench(protocol, 1, 2)
    b.say(1, "a")
    b.crash(1)
    b.settle()
    return b


def crash_that_loses_packets(protocol: Protocol) -> Bench:
    """1 stops, and what it had handed over is lost with it. Then 2 speaks."""
    b = bench(protocol, 1, 2, 3)
    b.say(1, "a")
    b.lose(1)
    b.crash(1)
    b.say(2, "b")
    b.settle()
    return b


def growing_view(protocol: Protocol) -> Bench:
    """1 was alone when the group began; with 2 and 3 it speaks, and stops with its packets."""
    b = bench(protocol, 1)
    for p in (2, 3):
        b.machines[p], b.log[p], b.timers[p] = protocol(p), [], {}
    b.step(1, Flush(1, ()))
    for p in (1, 2, 3):
        b.step(p, View(1, 2, (1, 2, 3), 1, 2))
    b.say(1, "a")
    b.lose(1)
    b.crash(1)
    b.say(2, "b")
    b.settle()
    return b


def nothing_is_lost(protocol: Protocol) -> Bench:
    """One message, and it arrives."""
    b = bench(protocol, 1, 2)
    b.say(1, "a")
    b.go_on()
    return b


def lost_last_message(protocol: Protocol) -> Bench:
    """One message, and it is lost."""
    b = bench(protocol, 1, 2)
    b.say(1, "a")
    b.lose(1, 2)
    b.go_on()
    return b


def dead_sender(protocol: Protocol) -> Bench:
    """Only 2 got what 1 sent before it stopped."""
    b = bench(protocol, 1, 2, 3)
    b.say(1, "a")
    b.lose(1, 3)
    b.bring(1, 2)
    b.crash(1)
    b.go_on(rounds=40)
    return b


def later_message_first(protocol: Protocol) -> Bench:
    """2 answers a with c. At 3 the second message of 1 has come, and a has not."""
    b = bench(protocol, 1, 2, 3)
    b.say(1, "a", "b")
    b.bring(1, 2, text="a")
    b.say(2, "c")
    b.bring(1, 3, text="b")
    b.bring(2, 3, text="c")
    b.settle()
    return b


def one_speaks(protocol: Protocol) -> Bench:
    """One message, and everything arrives."""
    b = bench(protocol, 1, 2)
    b.say(1, "a")
    b.settle()
    return b


def overtaken_request(protocol: Protocol) -> Bench:
    """The second message of 2 reaches the sequencer before the first."""
    b = bench(protocol, 1, 2)
    b.say(2, "a", "b")
    b.bring(2, 1, text="b")
    b.settle()
    return b


def equal_numbers(protocol: Protocol) -> Bench:
    """1 and 2 speak at once: everybody proposes 2 for the message of the other."""
    b = bench(protocol, 1, 2)
    b.say(1, "a")
    b.say(2, "b")
    b.settle()
    return b


def never_proposed(protocol: Protocol) -> Bench:
    """2 has proposed 1 for a. 3 never got a, and delivers b at 2. Then 1, the sender of a, stops.

    At 2, which sent b, it still waits for a.
    """
    b = bench(protocol, 1, 2, 3)
    b.say(1, "a")
    b.bring(1, 2, text="a")
    b.say(2, "b")
    b.bring(2, text="b")
    b.bring(dst=2, header=Proposed)
    b.bring(2, 3, header=Agreed)
    b.lose(1, 3)
    b.crash(1)
    flush(b, 2, 3)
    b.settle()
    return b


def flush(b: Bench, *members: int) -> None:
    """The next view, with all that is unstable at its members."""
    machines = {p: machine for p, machine in b.machines.items() if p in members}
    union = [
        frame
        for machine in machines.values()
        if isinstance(machine, OrderingProtocol)
        for frame in machine.unstable(1)
    ]
    for p in machines:
        b.step(p, Flush(1, tuple(union)), View(1, 2, members, members[0], 2))


# -- across groups ---------------------------------------------------------------------------------


def two_groups_of_one_sender(protocol: Protocol) -> Bench:
    """1 sends to one group, then to the other; at 2, in both, the second message comes first."""
    o = Overlap(protocol, {1: (1, 2), 2: (1, 2)})
    o.tell(1, 1, "a")
    o.tell(1, 2, "b")
    o.bring(1, 2, text="b")
    o.settle()
    return o


def ring_of_groups(protocol: Protocol) -> Bench:
    """004, figure 3: m1 to m4 go round a ring of groups, each caused by the one before."""
    o = Overlap(protocol, RING)
    for sender, group, receiver, text in (
        (1, 1, 3, "m1"), (3, 2, 6, "m2"), (6, 3, 7, "m3"), (7, 4, 2, "m4"),
    ):  # fmt: skip
        o.tell(sender, group, text)
        o.bring(sender, receiver, text=text)
    o.settle()
    return o


def named_before_it_came(protocol: Protocol) -> Bench:
    """2 answers a in another group; the answer comes to 3 before a."""
    o = Overlap(protocol, {1: (1, 2, 3), 2: (2, 3)})
    o.tell(1, 1, "a")
    o.bring(1, 2, text="a")
    o.tell(2, 2, "b")
    o.bring(2, 3, text="b")
    o.settle()
    return o


def lost_with_its_sender(protocol: Protocol) -> Bench:
    """1 sends a to one group and b to another, and stops. a is lost; 3, not in its group, has b."""
    o = Overlap(protocol, {1: (1, 2), 2: (1, 2, 3)}, Options())
    o.tell(1, 1, "a")
    o.tell(1, 2, "b")
    o.arrive(*o.find(1, 3, text="b"))
    o.crash(1)
    o.cut({1: (2,), 2: (2, 3)})
    o.settle()
    return o


def answer_to_the_lost(protocol: Protocol) -> Bench:
    """2 answers a, which only it got, in the same group; then 1 and 2 stop."""
    o = Overlap(protocol, {1: (1, 2, 3)})
    o.tell(1, 1, "a")
    o.bring(1, 2, text="a")
    o.lose(1)
    o.tell(2, 1, "b")
    o.bring(2, 3, text="b")
    o.crash(1, 2)
    o.cut({1: (3,)})
    o.settle()
    return o


def answer_in_another_group(protocol: Protocol) -> Bench:
    """2 answers a, which only it got, in group 2; then 1 and 2 stop. 4 is in group 2 alone."""
    o = Overlap(protocol, {1: (1, 2, 3), 2: (2, 3, 4)})
    o.tell(1, 1, "a")
    o.bring(1, 2, text="a")
    o.lose(1)
    o.tell(2, 2, "b")
    o.bring(2, text="b")
    o.crash(1, 2)
    o.cut({1: (3,), 2: (3, 4)})
    o.settle()
    return o


ROWS = (
    Directed(
        name="E-C1",
        breaks="agreement.uniform",
        wrong=unsequenced.DeliversBeforeRelaying,
        right=Reliable,
        schedule=crash_after_delivery,
    ),
    Directed(
        name="E-C1 where a crash loses packets",
        breaks="agreement.uniform",
        wrong=majorities.ReliableCalledUniform,
        right=Uniform,
        schedule=crash_that_loses_packets,
    ),
    Directed(
        name="E-C2",
        breaks="agreement",
        wrong=negative_acks.TakesTheNextForALoss,
        right=NakMulticast,
        schedule=nothing_is_lost,
    ),
    Directed(
        name="E-C3",
        breaks="agreement",
        wrong=negative_acks.NeverTellsItsStatus,
        right=NakMulticast,
        schedule=lost_last_message,
    ),
    Directed(
        name="E-C4",
        breaks="agreement",
        wrong=negative_acks.AsksTheSenderAlone,
        right=NakMulticast,
        schedule=dead_sender,
    ),
    Directed(
        name="E-C5",
        breaks="causal.group",
        wrong=unsequenced.CountsReceived,
        right=CausalVector,
        schedule=later_message_first,
    ),
    Directed(
        name="E-C6",
        breaks="validity",
        wrong=unsequenced.TestsItsOwnCopy,
        right=CausalVector,
        schedule=one_speaks,
    ),
    Directed(
        name="E-C7 PB",
        breaks="fifo.group",
        wrong=sequenced.NumbersOnArrivalPB,
        right=SequencerPB,
        schedule=overtaken_request,
    ),
    Directed(
        name="E-C7 BB",
        breaks="fifo.group",
        wrong=sequenced.NumbersOnArrivalBB,
        right=SequencerBB,
        schedule=overtaken_request,
    ),
    Directed(
        name="E-C8",
        breaks="total.group",
        wrong=agreements.WithoutATieRule,
        right=AgreedOrder,
        schedule=equal_numbers,
    ),
    Directed(
        name="4.4 maximum over the proposals there are",
        breaks="total.group",
        wrong=agreements.SettlesByTheProposalsThereAre,
        right=AgreedOrder,
        schedule=never_proposed,
    ),
    Directed(
        name="1.3 majority of the wrong view",
        breaks="agreement.uniform",
        wrong=majorities.CountsTheFirstView,
        right=Uniform,
        schedule=growing_view,
    ),
    Directed(
        name="2 FIFO in each group",
        breaks="fifo.global",
        wrong=across_groups.FifoInEachGroup,
        right=GlobalFifo,
        schedule=two_groups_of_one_sender,
    ),
    Directed(
        name="3.2 a clock per group",
        breaks="causal.global",
        wrong=across_groups.AClockPerGroup,
        right=Cbcast,
        schedule=two_groups_of_one_sender,
    ),
    Directed(
        name="3.2 the sender's own groups only",
        breaks="causal.global",
        wrong=across_groups.TellsOnlyItsOwnGroups,
        right=Cbcast,
        schedule=ring_of_groups,
    ),
    Directed(
        name="3.2 maximum for own groups",
        breaks="causal.global",
        wrong=across_groups.ClaimsWhatItHasNotDelivered,
        right=Cbcast,
        schedule=named_before_it_came,
    ),
    Directed(
        name="11.2 contiguous prefix alone",
        breaks="agreement",
        wrong=across_groups.FlushesThePrefixAlone,
        right=Cbcast,
        schedule=answer_in_another_group,
    ),
    Directed(
        name="11.2 what depends on the lost is delivered",
        breaks="causal.group",
        wrong=across_groups.DeliversWithoutTheLost,
        right=Cbcast,
        schedule=answer_to_the_lost,
    ),
    Directed(
        name="11.3 without the send rule",
        breaks="causal.global",
        wrong=across_groups.SendsWithoutWaiting,
        right=Cbcast,
        schedule=lost_with_its_sender,
    ),
)  # fmt: skip
