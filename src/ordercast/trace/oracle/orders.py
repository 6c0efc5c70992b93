"""fifo, causal, total, and the hybrids made of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise

from ordercast.trace.oracle.findings import Findings
from ordercast.trace.oracle.graphs import knots, shortest_cycle
from ordercast.trace.oracle.logs import Run
from ordercast.trace.oracle.membership import owes
from ordercast.trace.schema import Judgement, Violation

Pairs = Iterable[tuple[str, str]]  # messages (a, b): whoever delivers b delivers a before


def observers(run: Run, *, uniform: bool) -> list[str]:
    """Plain: the processes that did not crash, cut logs included. Uniform: all."""
    return list(run.logs) if uniform else run.correct()


# Pairs of messages that must keep their order.


def sent_in_program_order(run: Run) -> Pairs:
    """p sends a then b."""
    return [
        (a, b)
        for a, send_a in run.sends.items()
        for b, send_b in run.sends.items()
        if send_a.process == send_b.process and send_a.position < send_b.position
    ]


def sent_in_causal_order(run: Run) -> Pairs:
    """send(a) -> send(b), over all groups."""
    return [
        (a, b)
        for a, send_a in run.sends.items()
        for b, send_b in run.sends.items()
        if a != b and send_b in run.before[send_a]
    ]


def sent_in_causal_order_within_a_group(run: Run) -> Pairs:
    """a, b in g, and send(a) -> send(b) induced by g's messages only."""
    pairs = []
    for g in sorted({run.group_of(m) for m in run.sends}):
        before = run.before_in(g)
        sent_to_g = [m for m in run.sends if run.group_of(m) == g]
        pairs += [
            (a, b)
            for a in sent_to_g
            for b in sent_to_g
            if a != b and run.sends[b] in before[run.sends[a]]
        ]
    return pairs


def fifo_group(run: Run, *, uniform: bool) -> Judgement:
    """p sends a then b to one group: an observer delivering b delivers a before b."""
    pairs = [(a, b) for a, b in sent_in_program_order(run) if run.group_of(a) == run.group_of(b)]
    return _kept("fifo.group", run, pairs, uniform=uniform)


def fifo_global(run: Run, *, uniform: bool) -> Judgement:
    """p sends a then b, to any groups: an observer delivering b delivers a before b."""
    return _kept("fifo.global", run, sent_in_program_order(run), uniform=uniform)


def causal_group(run: Run, *, uniform: bool) -> Judgement:
    """Within each group, by that group's messages only."""
    pairs = sent_in_causal_order_within_a_group(run)
    return _kept("causal.group", run, pairs, uniform=uniform)


def causal_global(run: Run, *, uniform: bool) -> Judgement:
    """send(a) -> send(b): an observer delivering b delivers a before b."""
    return _kept("causal.global", run, sent_in_causal_order(run), uniform=uniform)


def _kept(name: str, run: Run, pairs: Pairs, *, uniform: bool) -> Judgement:
    found = Findings(name + (".uniform" if uniform else ""))
    for a, b in pairs:
        for q in observers(run, uniform=uniform):
            _delivers_first(run, q, a, b, found)
    return found.judgement()


def _delivers_first(run: Run, q: str, a: str, b: str, found: Findings) -> None:
    """q delivering b delivers a before b.

    Inversion if a comes later. Gap if a is absent and owes(q, a, position of b); a gap in a log
    with `lost` is inconclusive.
    """
    order = run.deliveries[q]
    if b not in order:
        return
    if a in order:
        if order[a] > order[b]:
            found.violated(
                f"{q} delivered {b} before {a}.",
                process=q, first=a, second=b, what="inversion",
            )  # fmt: skip
    elif owes(run, q, a, order[b]):
        found.missing(
            not run.lost(q), f"{q} delivered {b} without {a}, which comes before it.",
            process=q, missing=a, second=b, what="gap",
        )  # fmt: skip


# Total order.


def total_group(run: Run, *, uniform: bool) -> Judgement:
    """For each g the union of the observers' delivery orders of g's messages is acyclic."""
    found = Findings("total.group" + (".uniform" if uniform else ""))
    for g in sorted({run.group_of(m) for m in run.delivered}):
        of_g = {m for m in run.delivered if run.group_of(m) == g}
        _acyclic(run, of_g, found, uniform=uniform)
    return found.judgement()


def total_global(run: Run, *, uniform: bool) -> Judgement:
    """The union of the observers' delivery orders of all messages is acyclic."""
    found = Findings("total.global" + (".uniform" if uniform else ""))
    _acyclic(run, set(run.delivered), found, uniform=uniform)
    return found.judgement()


def _acyclic(run: Run, messages: set[str], found: Findings, *, uniform: bool) -> None:
    """One violation for each knot."""
    watching = observers(run, uniform=uniform)
    for knot in knots(_neighbours(run, watching, messages)):
        followed_by: dict[str, set[str]] = {m: set() for m in sorted(knot)}
        witness: dict[tuple[str, str], str] = {}
        for q in watching:
            for a, b in combinations([m for m in run.deliveries[q] if m in knot], 2):
                followed_by[a].add(b)
                witness.setdefault((a, b), q)
        cycle = shortest_cycle(followed_by)
        assert cycle is not None
        steps = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        said = ", ".join(f"{witness[a, b]} delivered {a} before {b}" for a, b in steps)
        found.violated(said + ".", cycle=cycle, processes=[witness[step] for step in steps])


def _neighbours(run: Run, watching: list[str], messages: set[str]) -> dict[str, set[str]]:
    """Each of the messages, and which of them somebody delivers next."""
    next_of: dict[str, set[str]] = {m: set() for m in sorted(messages)}
    for q in watching:
        for a, b in pairwise([m for m in run.deliveries[q] if m in messages]):
            next_of[a].add(b)
    return next_of


def total_pairwise(run: Run, *, uniform: bool) -> Judgement:
    """No two observers deliver two common messages in opposite orders."""
    found = Findings("total.pairwise" + (".uniform" if uniform else ""))
    for p, q in combinations(observers(run, uniform=uniform), 2):
        _agree(run, p, q, set(run.delivered), found)
    return found.judgement()


def _agree(run: Run, p: str, q: str, messages: set[str], found: Findings) -> None:
    """p and q deliver what both deliver in one order; one violation for each knot."""
    here, there = run.deliveries[p], run.deliveries[q]
    common = [m for m in here if m in there and m in messages]
    opposite = [(a, b) for a, b in combinations(common, 2) if there[a] > there[b]]
    if not opposite:
        return
    for knot in knots(_neighbours(run, [p, q], set(common))):
        a, b = next((a, b) for a, b in opposite if {a, b} <= knot)
        found.violated(
            f"{p} delivered {a} before {b}, {q} {b} before {a}.",
            processes=[p, q], first=a, second=b,
        )  # fmt: skip


def total_gapless(run: Run, *, uniform: bool) -> Judgement:
    """Observer p delivers a before b (same g), observer q delivers b => q delivers a before b.

    One violation for each knot of two observers in a group, and one for each message that q lacks.
    """
    found = Findings("total.gapless" + (".uniform" if uniform else ""))
    watching = observers(run, uniform=uniform)
    for g in sorted({run.group_of(m) for m in run.delivered}):
        of_g = {m for m in run.delivered if run.group_of(m) == g}
        for p, q in combinations(watching, 2):
            _agree(run, p, q, of_g, found)
        for q in watching:
            for a in sorted(of_g - set(run.deliveries[q])):
                _shows_no_gap(run, watching, q, a, of_g, found)
    return found.judgement()


def _shows_no_gap(
    run: Run, watching: list[str], q: str, a: str, of_g: set[str], found: Findings
) -> None:
    """q, which never delivers a, delivers nothing where it owes a that somebody delivers later."""
    order = run.deliveries[q]
    owing = [b for b in order if b in of_g and owes(run, q, a, order[b])]
    for p in watching:
        there = run.deliveries[p]
        for b in owing:
            if a in there and b in there and there[a] < there[b]:
                found.missing(
                    not run.lost(q), f"{q} delivered {b} without {a}, which comes before it.",
                    process=q, missing=a, second=b, what="gap",
                )  # fmt: skip
                return


# Hybrids.


def both(name: str, one: Judgement, other: Judgement) -> Judgement:
    """Both parts hold; n/a only when both are. violated > inconclusive > ok > n/a."""
    found = Findings(name)
    for part in (one, other):
        found.violations += [Violation(name, v.sentence, v.witness) for v in part.violations]
        found.doubts += part.doubts
    if one.verdict == other.verdict == "n/a":
        return Judgement("n/a")
    return found.judgement()
