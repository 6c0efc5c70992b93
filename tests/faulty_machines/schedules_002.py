"""Schedules for the errata of the two-layered group (002).

Processes 1, 2, 3 are one subgroup and 4, 5, 6 the other; in the larger group 7, 8, 9 are a third.
The first of each is its gateway.
"""

from __future__ import annotations

from faulty_machines import two_layers
from faulty_machines.directed import Directed, Protocol
from machines import Bench, G, bench
from ordercast.core.events import Flush, Kept, View
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.protocols.two_layered.group import TwoLayered

PREACK = Options(delivery_level="preack")


def two_subgroups(protocol: Protocol, options: Options | None = None) -> Bench:
    return bench(protocol, 1, 2, 3, 4, 5, 6, options=options)


def flush(b: Bench, *members: int) -> None:
    """The next view, with all that is unstable at its members; they get what the leader chose."""
    union: dict[tuple[int, int], Kept] = {}
    for p in members:
        machine = b.machines[p]
        assert isinstance(machine, OrderingProtocol)
        for kept in machine.unstable(G):
            key = (kept.origin, kept.n)
            union[key] = machine.better(union[key], kept) if key in union else kept
    for p in members:
        b.step(p, Flush(G, tuple(union.values())), View(G, 2, members, members[0], 2))


def confirm(b: Bench) -> None:
    """Packets and words, until there are no more; nobody asks for what is late."""
    b.carry()
    while due := [p for p, timers in b.timers.items() if (G, "ack") in timers]:
        for p in due:
            b.ring(p, "ack")
        b.carry()


def overtaken_question(protocol: Protocol) -> Bench:
    """3 answers a with b; at its gateway the answer comes first."""
    b = two_subgroups(protocol)
    b.say(2, "a")
    b.bring(2, 3, text="a")
    b.say(3, "b")
    b.bring(3, 1, text="b")
    b.settle()
    return b


def reply_to_what_was_forwarded_first(protocol: Protocol) -> Bench:
    """As before, and a is still late at the gateway when 5 replies to b."""
    b = two_subgroups(protocol, PREACK)
    b.say(2, "a")
    (late,) = b.find(2, 1, text="a")
    b.flight.remove(late)
    b.bring(2, 3, text="a")
    b.say(3, "b")
    confirm(b)
    b.say(5, "reply")
    confirm(b)
    b.flight.append(late)
    b.settle()
    return b


def three_subgroups(protocol: Protocol) -> Bench:
    """5 answers what 1 said; at the third gateway the answer comes first."""
    b = bench(protocol, *range(1, 10))
    b.say(1, "a")
    b.bring(1, 4, text="a")
    b.bring(4, 5, text="a")
    b.say(5, "b")
    b.bring(5, 4, text="b")
    b.bring(4, 7, text="b")
    b.settle()
    return b


def lost_last_message(protocol: Protocol) -> Bench:
    """What 2 says reaches nobody, and nobody says anything else."""
    b = two_subgroups(protocol)
    b.say(2, "a")
    b.lose(text="a")
    b.go_on()
    return b


def answer_outlives_its_question(protocol: Protocol) -> Bench:
    """3 answers a of 2, and both die. The gateway has the answer, nobody has the question."""
    b = two_subgroups(protocol)
    b.say(2, "a")
    b.bring(2, 3, text="a")
    b.say(3, "b")
    b.lose(text="a")
    b.bring(3, 1, text="b")
    b.crash(2, 3)
    flush(b, 1, 4, 5, 6)
    b.settle()
    return b


def one_forwarded_one_not(protocol: Protocol) -> Bench:
    """The gateway has numbered much that 2 and 3 did not hear of. It forwards a of 2, and dies
    before it has the answer of 3. Of all that 5 has nothing yet."""
    b = two_subgroups(protocol)
    b.say(1, "x", "y", "z")
    for text in "xyz":
        b.bring(1, 4, text=text)
    b.say(2, "a")
    b.bring(2, text="a")
    b.bring(1, 4, text="a")
    b.say(3, "b")
    b.flight.clear()
    b.crash(1)
    flush(b, 2, 3, 4, 5, 6)
    b.settle()
    return b


def half_passed_on(protocol: Protocol) -> Bench:
    """a was forwarded, and the other gateway has passed it on to one of its two: the first dies."""
    b = two_subgroups(protocol)
    b.say(2, "a")
    b.bring(2, 1, text="a")
    b.bring(1, 4, text="a")
    b.bring(4, 5, text="a")
    b.flight.clear()
    b.crash(1)
    flush(b, 2, 3, 4, 5, 6)
    b.settle()
    return b


ROWS = (
    Directed(
        name="E-T2",
        breaks="causal.group",
        wrong=two_layers.AcceptsBySenderAlone,
        right=TwoLayered,
        schedule=overtaken_question,
    ),
    Directed(
        name="E-T3",
        breaks="causal.group",
        wrong=two_layers.PreacknowledgedByTheRules,
        right=TwoLayered,
        schedule=reply_to_what_was_forwarded_first,
    ),
    Directed(
        name="E-T4",
        breaks="causal.group",
        wrong=two_layers.CountsAfterwards,
        right=TwoLayered,
        schedule=three_subgroups,
    ),
    Directed(
        name="8.4 the last message",
        breaks="agreement",
        wrong=two_layers.NeverConfirmsAlone,
        right=TwoLayered,
        schedule=lost_last_message,
    ),
    Directed(
        name="8.4b what waits",
        breaks="causal.group",
        wrong=two_layers.HandsRoundWhatWaits,
        right=TwoLayered,
        schedule=answer_outlives_its_question,
    ),
    Directed(
        name="8.4b numbers of the gateway",
        breaks="causal.group",
        wrong=two_layers.GatewaysNumbersDecide,
        right=TwoLayered,
        schedule=one_forwarded_one_not,
    ),
    Directed(
        name="8.4b subgroups alone",
        breaks="agreement",
        wrong=two_layers.SubgroupsFlushAlone,
        right=TwoLayered,
        schedule=half_passed_on,
    ),
)
