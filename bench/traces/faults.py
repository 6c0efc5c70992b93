"""The faults that can be planted in a generated run, one small function each.

Each is acted out by a few processes in groups of their own, or in g0 among all (`main_...`). The
letters: s, t send; p, q, r observe. What a fault breaks is written beside it; `closure` adds what
follows by definition. The tests compare all of it with the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.traces.stage import Stage
from ordercast.trace.schema import ORDER_PROPERTIES

FIFO = ("fifo.group", "fifo.global")
CAUSAL = ("causal.group", "causal.global")
TOTAL = ("total.group", "total.global", "total.pairwise", "total.gapless")
AGREEMENT = ("agreement", "agreement.uniform")
LATER = ("fifo.global", "causal.global")  # a message that never comes is missed by all that follow
HYBRIDS = {
    "hybrid.total_fifo": {"total.group", "fifo.group"},
    "hybrid.total_causal": {"total.global", "causal.global"},
    "hybrid.kindberg": {"total.group", "causal.global"},
}


def closure(breaks: Iterable[str]) -> frozenset[str]:
    """With hybrids and uniform forms. No observer of a planted fault crashes."""
    names = set(breaks)
    names |= {hybrid for hybrid, parts in HYBRIDS.items() if parts & names}
    return frozenset(names | {f"{name}.uniform" for name in names if name in ORDER_PROPERTIES})


@dataclass(frozen=True)
class Outline:
    """What a fault function says of its fault, with the numbers that the world uses."""

    breaks: tuple[str, ...]  # the first is what the fault is there for
    messages: tuple[int, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()
    processes: tuple[int, ...] = ()
    group: int | None = None
    chain: tuple[int, ...] = ()


Act = Callable[[Stage], Outline]


# Order of one sender, causal order.


def fifo_inversion(on: Stage) -> Outline:
    s, q = on.people[:2]
    g = on.group(q)
    a, b = on.send(s, g), on.send(s, g)
    on.deliver(q, b, a)
    return Outline((*FIFO, *CAUSAL), (a, b), processes=(q,), chain=(a, b))


def fifo_gap(on: Stage) -> Outline:
    s, q, r = on.people[:3]
    g = on.group(q, r)
    a, b = on.send(s, g), on.send(s, g)
    on.deliver(r, a, b)
    on.deliver(q, b)
    breaks = (*FIFO, *CAUSAL, *AGREEMENT, "total.gapless")
    return Outline(breaks, (a, b), ((q, a),), (q,), chain=(a, b))


def causal_gap(on: Stage) -> Outline:
    """t sends b after it delivered a; q delivers b and never a."""
    s, t, q = on.people[:3]
    g = on.group(t, q)
    a = on.send(s, g)
    on.deliver(t, a)
    b = on.send(t, g, act=1)
    on.deliver(t, b, act=1)
    on.deliver(q, b, act=1)
    breaks = (*CAUSAL, "fifo.global", *AGREEMENT, "total.gapless")
    return Outline(breaks, (a, b), ((q, a),), (q,), chain=(a, b))


def causal_inversion(on: Stage) -> Outline:
    """The same two messages, and q delivers b, then a. t saw them the other way round."""
    s, t, q = on.people[:3]
    g = on.group(t, q)
    a = on.send(s, g)
    on.deliver(t, a)
    b = on.send(t, g, act=1)
    on.deliver(t, b, act=1)
    on.deliver(q, b, a, act=1)
    return Outline((*CAUSAL, *TOTAL), (a, b), processes=(q,), chain=(a, b))


def causal_transitive(on: Stage) -> Outline:
    """c carries the news of a to t. q, which never gets c, delivers b before a."""
    s, t, q = on.people[:3]
    a = on.send(s, on.group(q))
    c = on.send(s, on.group(t))
    on.deliver(t, c)
    b = on.send(t, on.group(q), act=1)
    on.deliver(q, b, a, act=1)
    return Outline(("causal.global",), (a, b), processes=(q,), chain=(a, c, b))


# Total order.


def total_cycle_2(on: Stage) -> Outline:
    s, t, p, q = on.people[:4]
    g = on.group(p, q)
    a, b = on.send(s, g), on.send(t, g)
    on.deliver(p, a, b)
    on.deliver(q, b, a)
    return Outline(TOTAL, (a, b), processes=(p, q))


def total_cycle_3(on: Stage) -> Outline:
    """p: a b, q: b c, r: c a, by groups that overlap in one process each."""
    s, p, q, r = on.people[:4]
    a, b, c = (
        on.send(sender, on.group(*pair)) for sender, pair in ((s, (r, p)), (p, (p, q)), (q, (q, r)))
    )
    on.deliver(p, a, b)
    on.deliver(q, b, c)
    on.deliver(r, c, a)
    return Outline(("total.global",), (a, b, c), processes=(p, q, r))


def total_cycle_3_in_a_group(on: Stage) -> Outline:
    """The same in one group, where each of the three misses one message."""
    s, p, q, r = on.people[:4]
    g = on.group(p, q, r)
    a, b, c = (on.send(sender, g) for sender in (s, p, q))
    on.deliver(p, a, b)
    on.deliver(q, b, c)
    on.deliver(r, c, a)
    missing = ((p, c), (q, a), (r, b))
    breaks = ("total.group", "total.global", "total.gapless", *AGREEMENT, *LATER)
    return Outline(breaks, (a, b, c), missing, (p, q, r))


# Rows that cannot be.


def never_sent(on: Stage) -> Outline:
    s, q = on.people[:2]
    a = on.unsent(s, on.group(q))
    on.deliver(q, a)
    return Outline(("no_creation",), (a,), processes=(q,))


def outside_the_group(on: Stage) -> Outline:
    s, q, r = on.people[:3]
    a = on.send(s, on.group(r))
    on.deliver(r, a)
    on.deliver(q, a)
    return Outline(("membership",), (a,), processes=(q,))


# Views.


def two_lists(on: Stage) -> Outline:
    p, q = on.people[:2]
    g = on.group(declared=False)
    on.view(p, g, 1, p, q)
    on.view(q, g, 1, q, p)
    return Outline(("views",), group=g)


def view_goes_back(on: Stage) -> Outline:
    p = on.people[0]
    g = on.group(declared=False)
    on.view(p, g, 2, p)
    on.view(p, g, 1, p)
    return Outline(("views",), group=g)


def vsync_difference(on: Stage) -> Outline:
    """A guest's message is delivered by p before the second view, by q after it."""
    s, p, q = on.people[:3]
    g = on.group(declared=False)
    a = on.send(s, g)
    on.view(p, g, 1, p, q)
    on.deliver(p, a)
    on.view(p, g, 2, p, q)
    on.view(q, g, 1, p, q)
    on.view(q, g, 2, p, q)
    on.deliver(q, a)
    return Outline(("vsync",), (a,), processes=(p, q))


def delivered_in_the_next_view(on: Stage) -> Outline:
    s, q = on.people[:2]
    g = on.group(declared=False)
    for member in (s, q):
        on.view(member, g, 1, s, q)
    a = on.send_after(s, g)
    for member in (s, q):
        on.view(member, g, 2, s, q, act=1)
        on.deliver(member, a, act=1)
    return Outline(("sending_view",), (a,), processes=(s, q))


# Among all, in g0.


def main_gap(on: Stage) -> Outline:
    """One process misses one message of a group with views; nothing else is odd."""
    s, q = on.people[:2]
    a, b = on.first, on.first + 1
    on.world.group[[a, b]], on.world.sender[[a, b]] = 0, s
    on.world.dropped.add((q, a))
    breaks = (*FIFO, *CAUSAL, *AGREEMENT, "total.gapless", "vsync")
    return Outline(breaks, (a, b), ((q, a),), (q,), chain=(a, b))


def main_inversion(on: Stage) -> Outline:
    """One process swaps two messages that one sender sent in a row."""
    s, q = on.people[:2]
    a, b = on.first, on.first + 1
    on.world.group[[a, b]], on.world.sender[[a, b]] = 0, s
    on.world.dropped |= {(q, a), (q, b)}
    on.deliver(q, b, a)
    return Outline((*FIFO, *CAUSAL, *TOTAL), (a, b), processes=(q,), chain=(a, b))


def main_duplicate(on: Stage) -> Outline:
    q, a = on.people[0], on.first
    on.world.group[a], on.world.sender[a] = 0, on.people[1]
    on.deliver(q, a, act=1)
    return Outline(("no_duplication",), (a,), processes=(q,))


def main_wrong_group(on: Stage) -> Outline:
    q, a = on.people[0], on.first
    on.world.group[a], on.world.sender[a] = 0, on.people[1]
    on.world.regrouped[q, a] = on.group(declared=False)
    return Outline(("no_creation",), (a,), processes=(q,))


# After the last regular message, so that nothing later misses them.


def never_delivered(on: Stage) -> Outline:
    s, p, q = on.people[:3]
    a = on.send(s, on.group(p, q))
    on.deliver(p, a, act=1)
    return Outline(AGREEMENT, (a,), ((q, a),), (q,))


def own_message(on: Stage) -> Outline:
    """A sender that does not deliver its own message."""
    s = on.people[0]
    a = on.send(s, on.group(s))
    return Outline(("validity",), (a,), ((s, a),), (s,))


def gapless_gap(on: Stage) -> Outline:
    """a and b have nothing to do with each other; p delivers both, q only b."""
    s, t, p, q = on.people[:4]
    g = on.group(p, q)
    a, b = on.send(s, g), on.send(t, g)
    on.deliver(p, a, b, act=1)
    on.deliver(q, b, act=1)
    return Outline(("total.gapless", *AGREEMENT), (a, b), ((q, a),), (q,))


FAULTS: dict[str, Act] = {
    act.__name__: act
    for act in (
        main_gap, fifo_inversion, fifo_gap, causal_gap, causal_inversion, causal_transitive,
        total_cycle_2, total_cycle_3, total_cycle_3_in_a_group, never_sent,
        outside_the_group, two_lists, view_goes_back, vsync_difference, delivered_in_the_next_view,
        main_inversion, main_duplicate, main_wrong_group,
        never_delivered, own_message, gapless_gap,
    )
}  # fmt: skip
AT_THE_END = ("never_delivered", "own_message", "gapless_gap")
MASKED = ("total_cycle_3",)  # a run's one order is refuted by one cycle; other faults hide this one
TOGETHER = tuple(name for name in FAULTS if name not in MASKED)
