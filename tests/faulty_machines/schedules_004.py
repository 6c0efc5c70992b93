"""Schedules for the errata of Causal Blocks (004)."""

from __future__ import annotations

from domains import Overlap
from faulty_machines import blocks, relatives
from faulty_machines.directed import Directed, Protocol
from machines import Bench
from ordercast.machinery.silence import Null
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.fast import Fast
from ordercast.protocols.fast_p import FastP
from ordercast.protocols.relative import Relative
from ordercast.protocols.slow import Slow

X, Y, Z = 1, 2, 3  # groups, as the paper names them


def one_is_silent(protocol: Protocol) -> Bench:
    """1 speaks twice; 2 has nothing to say."""
    o = Overlap(protocol, {X: (1, 2)})
    o.tell(1, X, "a", "b")
    o.settle()
    return o


def two_are_silent(protocol: Protocol) -> Bench:
    """1 speaks twice; 2 and 3 have nothing to say."""
    o = Overlap(protocol, {X: (1, 2, 3)})
    o.tell(1, X, "a", "b")
    o.settle()
    return o


def number_of_a_foreign_group(protocol: Protocol) -> Bench:
    """1 speaks in X, then in Y. 3 is in Y alone and never gets what 1 said in X."""
    o = Overlap(protocol, {X: (1, 2), Y: (1, 3)})
    o.tell(1, X, "a")
    o.tell(1, Y, "b")
    o.settle()
    return o


def two_speak_at_once(protocol: Protocol) -> Bench:
    """a and b are concurrent."""
    o = Overlap(protocol, {X: (1, 2, 3)})
    o.tell(1, X, "a")
    o.tell(2, X, "b")
    o.settle()
    return o


def answer_comes_first(protocol: Protocol) -> Bench:
    """2 answers a; at 3 the answer comes before a."""
    o = Overlap(protocol, {X: (1, 2, 3)})
    o.tell(1, X, "a")
    o.bring(1, 2, text="a")
    o.tell(2, X, "b")
    o.bring(2, 3, text="b")
    o.settle()
    return o


def each_names_the_other_group(protocol: Protocol) -> Bench:
    """1 speaks in Y, then m in X; 2 at the same time in X, then n in Y."""
    o = Overlap(protocol, {X: (1, 2, 3), Y: (1, 2, 3)})
    o.tell(1, Y, "y")
    o.tell(1, X, "m")
    o.tell(2, X, "x")
    o.tell(2, Y, "n")
    o.settle()
    return o


def smaller_number_later(protocol: Protocol) -> Bench:
    """At 3 b, number 1, is delivered after a2, number 2; then 3 says c in Y. At 4 a2 is late."""
    o = Overlap(protocol, {X: (1, 2, 3, 4), Y: (3, 4)})
    o.tell(1, X, "a1", "a2")
    o.tell(2, X, "b")
    o.bring(1, 3)
    o.bring(2, 3)
    o.tell(3, Y, "c")
    o.ring(3, "silence", X)
    o.bring(1, 4, text="a1")
    o.bring(2, 4)
    o.bring(3, 4)
    o.settle()
    return o


def message_below_the_block(protocol: Protocol) -> Bench:
    """m2, in X, depends on m0 and m1, in Y, with numbers 2 and 3.

    At 4 m0 waits for z, in Z. Block 3 of Y is complete there, and m1, all that is in it, delivered.
    """
    o = Overlap(protocol, {X: (3, 4), Y: (1, 2, 3, 4), Z: (1, 4)})
    o.tell(1, Z, "z")
    o.tell(1, Y, "m0")
    o.tell(2, Y, "u", "v", "m1")
    o.bring(1, 3)
    o.bring(2, 3)
    o.tell(3, X, "m2")
    o.bring(2, 1)
    o.ring(1, "silence", Y)
    o.ring(3, "silence", Y)
    o.bring(2, 4)
    o.bring(1, 4, text="m0")
    o.bring(1, 4, header=Null)
    o.bring(3, 4)
    o.settle()
    return o


def told_by_one_who_has_not_waited(protocol: Protocol) -> Bench:
    """1 speaks in Y, then f in X: it names block 1 of Y. So does g, the answer of 2 to f and to m.

    m, of block 1 of Y too, is late at 1.
    """
    o = Overlap(protocol, {X: (1, 2), Y: (1, 2, 3)})
    o.tell(1, Y, "y")
    o.tell(1, X, "f")
    o.tell(3, Y, "m")
    o.bring(1, 2)
    o.bring(3, 2)
    o.tell(2, X, "g")
    o.bring(2, 1, text="g")
    o.settle()
    return o


def other_group_comes_first(protocol: Protocol) -> Bench:
    """1 speaks in Y, then in X; at 2, in both, the message of X comes first."""
    o = Overlap(protocol, {X: (1, 2), Y: (1, 2)})
    o.tell(1, Y, "a")
    o.tell(1, X, "b")
    o.bring(1, 2, text="b")
    o.settle()
    return o


def silent_in_the_other_group(protocol: Protocol) -> Bench:
    """1 speaks in Y, then in X; 3 has nothing to say in Y."""
    o = Overlap(protocol, {X: (1, 2), Y: (1, 2, 3)})
    o.tell(1, Y, "a")
    o.tell(1, X, "b")
    o.settle()
    return o


def second_message_first(protocol: Protocol) -> Bench:
    """The second message of 1 overtakes the first. (To first-in first-out links it cannot happen.)

    A right machine refuses the packet, and gets it again in its turn.
    """
    o = Overlap(protocol, {X: (1, 2)})
    o.tell(1, X, "a", "b")
    (late,) = o.find(1, 2, text="b")
    o.repeat(late)
    o.settle()
    return o


def overtaken_across_groups(protocol: Protocol) -> Bench:
    """1 speaks in Y, X and Y again; the last overtakes the first, and so completes its block."""
    o = Overlap(protocol, {X: (1, 2), Y: (1, 2)})
    o.tell(1, Y, "a")
    o.tell(1, X, "b")
    o.tell(1, Y, "c")
    (late,) = o.find(1, 2, text="c")
    o.repeat(late)
    o.bring(1, 2, text="b")
    o.settle()
    return o


def equal_numbers(protocol: Protocol) -> Bench:
    """1 and 2 speak at once, with the same block number."""
    o = Overlap(protocol, {X: (1, 2)})
    o.tell(1, X, "a")
    o.tell(2, X, "b")
    o.settle()
    return o


def joiner(protocol: Protocol) -> Bench:
    """One message was delivered. 2 joins, and speaks."""
    o = Overlap(protocol, {X: (1,)})
    o.tell(1, X, "a")
    o.cut({X: (1, 2)})
    o.tell(2, X, "b")
    o.settle()
    return o


def two_joiners(protocol: Protocol) -> Bench:
    """One message was delivered. 2 and 3 join, and speak at once."""
    o = Overlap(protocol, {X: (1,)})
    o.tell(1, X, "a")
    o.cut({X: (1, 2, 3)})
    o.tell(2, X, "b")
    o.tell(3, X, "c")
    o.settle()
    return o


ROWS = (
    Directed(
        name="E-M2",
        breaks="agreement",
        wrong=blocks.WaitsForItself,
        right=Slow,
        schedule=one_is_silent,
    ),
    Directed(
        name="E-M3",
        breaks="agreement",
        wrong=blocks.FastAsPrinted,
        right=Fast,
        schedule=number_of_a_foreign_group,
    ),
    Directed(
        name="E-M5 blocks",
        breaks="agreement",
        wrong=relatives.DeliversFromAbove,
        right=Relative,
        schedule=two_speak_at_once,
    ),
    Directed(
        name="E-M5 is unsafe",
        breaks="causal.group",
        wrong=relatives.DeliversFromAbove,
        right=Relative,
        schedule=answer_comes_first,
    ),
    Directed(
        name="E-M6",
        breaks="agreement",
        wrong=relatives.ACounterPerGroup,
        right=Relative,
        schedule=each_names_the_other_group,
    ),
    Directed(
        name="E-M7",
        breaks="causal.global",
        wrong=relatives.AssignsTheNumberOfItsGroup,
        right=Relative,
        schedule=smaller_number_later,
    ),
    Directed(
        name="E-M8",
        breaks="causal.global",
        wrong=relatives.LooksAtOneBlock,
        right=Relative,
        schedule=message_below_the_block,
    ),
    Directed(
        name="E-M9 no gbn",
        breaks="causal.global",
        wrong=relatives.TellsNothingOfOtherGroups,
        right=Relative,
        schedule=other_group_comes_first,
    ),
    Directed(
        name="E-M9 no updates",
        breaks="agreement",
        wrong=relatives.NotesNothingOnDelivery,
        right=Relative,
        schedule=one_is_silent,
    ),
    Directed(
        name="7.5 a group number that another told",
        breaks="causal.global",
        wrong=relatives.LeavesOutWhatAnotherTold,
        right=Relative,
        schedule=told_by_one_who_has_not_waited,
    ),
    Directed(
        name="6 slow without NULLs",
        breaks="validity",
        wrong=blocks.SilentSlow,
        right=Slow,
        schedule=two_are_silent,
    ),
    Directed(
        name="6 relative without NULLs",
        breaks="agreement",
        wrong=relatives.SilentRelative,
        right=Relative,
        schedule=silent_in_the_other_group,
    ),
    Directed(
        name="6 slow on a reordering network",
        breaks="causal.group",
        wrong=blocks.SlowOnAReorderingNetwork,
        right=Slow,
        schedule=second_message_first,
    ),
    Directed(
        name="6 fast_p on a reordering network",
        breaks="causal.group",
        wrong=blocks.FastPOnAReorderingNetwork,
        right=FastP,
        schedule=second_message_first,
    ),
    Directed(
        name="6 relative on a reordering network",
        breaks="causal.global",
        wrong=relatives.RelativeOnAReorderingNetwork,
        right=Relative,
        schedule=overtaken_across_groups,
    ),
    Directed(
        name="7.6 block b - 1 for a total order",
        breaks="total.group",
        wrong=blocks.SlowCalledTotal,
        right=BlockTotal,
        schedule=equal_numbers,
    ),
    Directed(
        name="7.5b a joiner at 0",
        breaks="agreement",
        wrong=blocks.JoinsAtZero,
        right=BlockTotal,
        schedule=joiner,
    ),
    Directed(
        name="7.5b two joiners at 0",
        breaks="total.group",
        wrong=blocks.JoinsAtZeroUnseen,
        right=BlockTotal,
        schedule=two_joiners,
    ),
)
