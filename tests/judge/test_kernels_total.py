"""total.*: merges, disagreeing observers, cycles and gaps, on traces small enough to read."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest

from notation import trace
from ordercast.judge.kernels import (
    compiled,
    cycles,
    gaps,
    inversions,
    merge,
    order_knots,
    strong_components,
)
from ordercast.judge.kernels.findings import TwoForms
from ordercast.judge.kernels.gap_candidates import common_order
from ordercast.judge.kernels.load import build_run
from ordercast.judge.kernels.membership import OPEN, Span
from ordercast.judge.kernels.missing_deliveries import MissingInSpan
from ordercast.judge.kernels.run import NONE, Run
from ordercast.judge.kernels.total import check_total
from ordercast.judge.kernels.total_gapless import check_gapless
from ordercast.trace.tables import event_table

Cycle = list[dict[str, str]]


@pytest.fixture(params=["plain", "compiled"], autouse=True)
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs with the kernels as Python and as machine code."""
    if request.param == "compiled":
        monkeypatch.setattr(compiled, "COMPILE_FROM", 0)
    else:
        for module in (merge, inversions, order_knots, strong_components, gaps):
            for kernel in vars(module).values():
                if isinstance(kernel, compiled.Kernel):
                    monkeypatch.setattr(kernel, "_compiled", None)
    return str(request.param)


def delivering(text: str, *, groups: str = "g") -> Run:
    """A run from lines like `p: abc`; messages go to the groups in turn, `!` is a crash,
    `?` a lost record."""
    rows = []
    for line in text.split("\n"):
        name, _, letters = line.strip().partition(": ")
        events = [_event(letter, groups) for letter in letters]
        rows.append(f"{name}: {'; '.join(events)}")
    return build_run(event_table(trace("\n".join(rows))))


def _event(letter: str, groups: str) -> str:
    if letter in "!?":
        return {"!": "crash", "?": "lost"}[letter]
    return f"deliver {letter} {groups[(ord(letter) - ord('a')) % len(groups)]}"


def counts(forms: TwoForms) -> tuple[int, int]:
    return forms.plain.violations, forms.uniform.violations


def cycle_of(forms: TwoForms) -> Cycle:
    [(_, witness)] = forms.plain.evidence
    cycle = witness["cycle"]
    assert isinstance(cycle, list)
    return cycle


def assert_held(run: Run, cycle: Cycle) -> None:
    """Each edge is in the log of the process it names, and the edges close a ring."""
    for edge, following in pairwise([*cycle, cycle[0]]):
        assert edge["after"] == following["before"]
        log = run.delivered[run.deliveries(run.processes.index(edge["process"]))]
        names = [run.name(m) for m in log]
        assert names.index(edge["before"]) < names.index(edge["after"])


# One order.


def test_logs_with_gaps_that_fit_one_order_are_merged_into_it() -> None:
    run = delivering("p: abd\nq: bcd\nr: ac")
    whole = merge.whole_orders(run)
    merged = merge.merge(run, whole, np.ones(3, np.bool_), to_the_end=False)
    assert not merged.stuck.any()
    assert sorted(merged.rank) == [0, 1, 2, 3]
    assert all(merged.fits(whole.of(s)) for s in range(3))


def test_a_merge_past_a_cycle_leaves_out_the_odd_one_only() -> None:
    run = delivering("p: abcde\nq: abcde\nr: abdce\ns: abcde")
    whole = merge.whole_orders(run)
    merged = merge.merge(run, whole, np.ones(4, np.bool_), to_the_end=True)
    assert merged.stuck.tolist() == [True]
    assert [merged.fits(whole.of(s)) for s in range(4)] == [True, True, False, True]
    assert sorted(merged.rank) == [0, 1, 2, 3, 4]


def test_a_merge_out_of_patience_still_takes_every_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merge, "PATIENCE", 0)
    run = delivering("p: abcdef\nq: fedcba\nr: cfabed")
    merged = merge.merge(run, merge.whole_orders(run), np.ones(3, np.bool_), to_the_end=True)
    assert sorted(merged.rank) == [0, 1, 2, 3, 4, 5]


def test_each_group_is_merged_by_itself() -> None:
    run = delivering("p: abcd\nq: dabc", groups="gh")
    by_group = merge.orders_by_group(run)
    names = ["".join(run.name(m) for m in by_group.of(s)) for s in range(len(by_group))]
    assert dict(zip(by_group.groups, (names[:2], names[2:]), strict=True)) == {
        run.groups.index("g"): ["ac", "ac"],
        run.groups.index("h"): ["bd", "db"],
    }
    merged = merge.merge(run, by_group, np.ones(4, np.bool_), to_the_end=False)
    assert [run.groups[by_group.groups[c]] for c in np.flatnonzero(merged.stuck)] == ["h"]


# total.group, total.global, total.pairwise.


def test_equal_logs_are_in_order() -> None:
    found = check_total(delivering("p: abc\nq: abc\nr: ac"), 20).findings
    assert {name: counts(forms) for name, forms in found.items()} == {
        "total.group": (0, 0), "total.global": (0, 0), "total.pairwise": (0, 0),
    }  # fmt: skip


def test_two_observers_in_opposite_orders_are_the_whole_witness() -> None:
    run = delivering("p: xaby\nq: xbay\nr: xaby")
    found = check_total(run, 20).findings
    assert counts(found["total.pairwise"]) == (2, 2)
    assert counts(found["total.group"]) == counts(found["total.global"]) == (1, 1)
    sentence, witness = found["total.group"].plain.evidence[0]
    assert sentence == "no single order fits: q delivers b before a; p delivers a before b"
    assert (witness["messages"], witness["processes"]) == (["b", "a"], ["p", "q"])
    events = witness["events"]
    assert isinstance(events, list)
    assert len(events) == 4


def test_disagreeing_pairs_are_counted_as_by_comparing_all() -> None:
    rng = Random(4)
    for _ in range(60):
        logs = {p: rng.sample("abcdefgh", rng.randint(0, 8)) for p in "pqrst"}
        for p in "pqr":
            logs[p].sort()
        text = "\n".join(f"{p}: {''.join(log)}" for p, log in logs.items() if log)
        if not text:
            continue
        run = delivering(text)
        inverted = [
            (p, q)
            for p in logs
            for q in logs
            if p < q and _common(logs[p], logs[q]) != _common(logs[q], logs[p])
        ]
        per_knot = [[p, q] for p, q in inverted for _ in _knots(logs[p], logs[q])]
        orders = check_total(run, 100)
        pairs = [w["processes"] for _, w in orders.findings["total.pairwise"].plain.evidence]
        assert pairs == per_knot
        assert len(orders.disordered) == len(inverted)
        assert orders.disordered.knots.sum() == len(per_knot)
        for _, witness in orders.findings["total.pairwise"].plain.evidence:
            cycle = witness["cycle"]
            assert isinstance(cycle, list)
            assert_held(run, cycle)


def _common(log: list[str], other: list[str]) -> list[str]:
    return [m for m in log if m in other]


def _knots(log: list[str], other: list[str]) -> list[set[str]]:
    """Messages that opposite pairs connect: each pair joins the knots that it touches."""
    found: list[set[str]] = []
    for a, b in combinations(_common(log, other), 2):
        if other.index(a) > other.index(b):
            touched = [knot for knot in found if knot & {a, b}]
            found = [knot for knot in found if knot not in touched]
            found.append({a, b}.union(*touched))
    return found


# Faults are counted apart.

TOTAL = ("total.group", "total.global", "total.pairwise", "total.gapless")


@pytest.mark.parametrize(
    ("log", "faults"),
    [
        ("abcdefg", 0),
        ("bacdefg", 1),  # one swap
        ("bacedgf", 3),  # three that do not overlap
        ("badcefg", 2),  # two right beside each other
        ("bcadefg", 1),  # overlapping: a and b, then a and c
        ("gbdcefa", 1),  # one swap inside another
        ("gfedcba", 1),  # every two messages
    ],
)
def test_swaps_count_apart_where_they_do_not_overlap(log: str, faults: int) -> None:
    run = delivering(f"p: abcdefg\nq: {log}")
    orders = check_total(run, 20)
    found = {**orders.findings, "total.gapless": gapless(run, {})}
    assert {name: counts(found[name]) for name in TOTAL} == dict.fromkeys(TOTAL, (faults, faults))
    for name in TOTAL:
        shown = [set(witness["messages"]) for _, witness in found[name].plain.evidence]  # type: ignore[call-overload]
        assert len(shown) == faults
        assert sum(map(len, shown)) == len(set().union(*shown))
        for _, witness in found[name].plain.evidence:
            assert_held(run, witness["cycle"])  # type: ignore[arg-type]


def test_a_swap_at_each_of_two_observers_is_two_faults_of_the_group() -> None:
    """Each of the two disagrees with all others once, and they with each other twice."""
    found = check_total(delivering("p: abcd\nq: bacd\nr: abdc"), 20).findings
    assert counts(found["total.group"]) == counts(found["total.global"]) == (2, 2)
    assert counts(found["total.pairwise"]) == (4, 4)


def test_a_ring_of_three_beside_a_swap_is_a_fault_of_its_own() -> None:
    run = delivering("p: dexab\nq: edxbc\nr: ca")
    found = check_total(run, 20).findings["total.group"].plain
    cycles_found = [witness["cycle"] for _, witness in found.evidence]
    assert found.violations == 2
    assert [len(cycle) for cycle in cycles_found] == [2, 3]  # type: ignore[arg-type]
    for cycle in cycles_found:
        assert_held(run, cycle)  # type: ignore[arg-type]


def test_two_observers_are_the_witness_of_a_knot_that_is_not_their_first() -> None:
    """p and q are opposite on d and e first, then on x and y, on a way round of a, y and c."""
    run = delivering("p: deabxy\nq: edyxc\nr: ca")
    found = check_total(run, 20).findings["total.group"].plain
    assert [len(witness["cycle"]) for _, witness in found.evidence] == [2, 2]  # type: ignore[arg-type]


def test_faults_within_each_group_count_apart() -> None:
    run = delivering("p: abcdefgh\nq: cdabghef", groups="gh")  # twice in g, twice in h
    found = check_total(run, 20).findings
    assert counts(found["total.group"]) == (4, 4)
    assert counts(found["total.global"]) == (2, 2)  # over both groups the swaps overlap


def test_knots_between_correct_observers_are_not_tied_together_by_a_crashed_one() -> None:
    found = check_total(delivering("p: abcd\nq: badc\nr: dabc!"), 20).findings
    assert counts(found["total.group"]) == counts(found["total.global"]) == (2, 1)


def test_observers_that_there_is_no_time_to_compare_wholly_count_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inversions, "COUNTED", 0)
    found = check_total(delivering("p: abcd\nq: badc"), 20).findings["total.pairwise"]
    assert (counts(found), len(found.plain.evidence)) == ((1, 1), 1)


def test_a_disagreement_across_groups_breaks_no_group() -> None:
    orders = check_total(delivering("p: ab\nq: ba", groups="gh"), 20)
    assert counts(orders.findings["total.group"]) == (0, 0)
    assert counts(orders.findings["total.global"]) == (1, 1)
    assert counts(orders.findings["total.pairwise"]) == (1, 1)
    assert len(orders.disordered_uniform) == 0


def test_every_group_with_a_cycle_counts_once() -> None:
    orders = check_total(delivering("p: abcdef\nq: fabcde\nr: efabcd", groups="ghi"), 20)
    by_group = orders.disordered
    assert counts(orders.findings["total.group"]) == (2, 2)
    assert counts(orders.findings["total.global"]) == (1, 1)
    pairs = sorted(zip(by_group.low.tolist(), by_group.high.tolist(), strict=True))
    assert pairs == [(0, 1), (0, 2), (0, 2), (1, 2)]


def test_a_crashed_observer_counts_in_the_uniform_form_only() -> None:
    found = check_total(delivering("p: ab\nq: ba!\nr: ab"), 20).findings
    assert {name: counts(forms) for name, forms in found.items()} == {
        "total.group": (0, 1), "total.global": (0, 1), "total.pairwise": (0, 2),
    }  # fmt: skip


def test_the_plain_witness_names_no_crashed_observer() -> None:
    found = check_total(delivering("p: abcd\nq: bacd!\nr: abdc"), 20).findings
    assert cycle_of(found["total.group"]) == [
        {"process": "r", "before": "d", "after": "c"},
        {"process": "p", "before": "c", "after": "d"},
    ]


def test_three_observers_can_break_the_order_where_no_two_do() -> None:
    run = delivering("p: ab\nq: bc\nr: ca")
    found = check_total(run, 20).findings
    assert counts(found["total.pairwise"]) == (0, 0)
    cycle = cycle_of(found["total.group"])
    assert len(cycle) == 3
    assert_held(run, cycle)


LONG_WAY_ROUND = "p: ab\nq: bc\nr: cd\ns: ca\nt: de\nu: ea"  # and s knows a short cut


def test_a_long_cycle_is_cut_short_where_an_observer_allows_it() -> None:
    run = delivering(LONG_WAY_ROUND)
    cycle = cycle_of(check_total(run, 20).findings["total.group"])
    assert len(cycle) == 3
    assert_held(run, cycle)


def test_a_cycle_that_is_too_long_to_shorten_is_shown_as_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cycles, "MAX_SHORTENED", 4)
    run = delivering(LONG_WAY_ROUND)
    cycle = cycle_of(check_total(run, 20).findings["total.group"])
    assert len(cycle) == 5
    assert_held(run, cycle)


def test_evidence_is_limited_and_the_count_is_not() -> None:
    found = check_total(delivering("p: ab\nq: ba\nr: ab\ns: ba"), 1).findings["total.pairwise"]
    assert (counts(found), len(found.plain.evidence)) == ((4, 4), 1)


# total.gapless.


@pytest.fixture(params=["looked up", "read through"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to find who delivers a message early."""
    cost = {"looked up": 0, "read through": 1 << 40}[request.param]
    monkeypatch.setattr(gaps, "LOOK_UP_COST", cost)


def gapless(run: Run, lacking: dict[str, tuple[Span, str]]) -> TwoForms:
    """`lacking`: process -> where it owes which messages."""
    missing: list[list[MissingInSpan]] = [[] for _ in run.processes]
    number = {run.name(m): m for m in range(run.message_count)}
    for name, (span, letters) in lacking.items():
        messages = np.array(sorted(number[letter] for letter in letters), np.int32)
        missing[run.processes.index(name)].append(MissingInSpan(0, span, messages))
    orders = check_total(run, 20)
    return check_gapless(run, missing, orders.disordered, orders.disordered_uniform, 20)


EVERYWHERE = Span(0, OPEN)


@pytest.mark.usefixtures("way")
def test_a_skipped_message_is_a_gap_and_a_later_one_is_not() -> None:
    found = gapless(delivering("p: abcd\nq: bc"), {"q": (EVERYWHERE, "ad")})
    assert counts(found) == (1, 1)
    [(sentence, witness)] = found.plain.evidence
    assert sentence == "p delivers a before b; q delivers b and never a"
    assert witness["missing"] == {"process": "q", "message": "a"}


@pytest.mark.usefixtures("way")
def test_gaps_are_counted_as_by_comparing_all() -> None:
    rng = Random(5)
    for _ in range(40):
        logs = {p: sorted(rng.sample("abcdefgh", rng.randint(2, 8))) for p in "pqrs"}
        if rng.random() < 0.5:
            rng.shuffle(logs["r"])
        run = delivering("\n".join(f"{p}: {''.join(log)}" for p, log in logs.items()))
        everything = {run.name(m) for m in range(run.message_count)}
        lacking = {q: "".join(everything - set(log)) for q, log in logs.items()}
        found = gapless(run, {q: (EVERYWHERE, some) for q, some in lacking.items()})
        expected = {
            (q, a)
            for q, some in lacking.items()
            for a in some
            for log in logs.values()
            if a in log and set(log[log.index(a) :]) & set(logs[q])
        }
        inversions = check_total(run, 20).disordered.knots.sum()
        assert counts(found)[0] - inversions == len(expected)


@pytest.mark.usefixtures("way")
def test_only_what_is_delivered_within_the_span_makes_a_gap() -> None:
    run = delivering("p: abcd\nq: bd")
    first = int(run.start[run.processes.index("q")])
    assert counts(gapless(run, {"q": (Span(first, first + 1), "ac")})) == (1, 1)
    assert counts(gapless(run, {"q": (Span(first + 1, OPEN), "ac")})) == (2, 2)
    assert counts(gapless(run, {"q": (Span(first, first), "ac")})) == (0, 0)


@pytest.mark.usefixtures("way")
def test_the_span_holds_for_an_observer_out_of_line_too() -> None:
    """p is opposite to s and t on e and f: two inversions. It shows the gap a, and not c."""
    run = delivering("p: eabcdf\nq: bd\ns: fe\nt: fe")
    first = int(run.start[run.processes.index("q")])
    assert counts(gapless(run, {"q": (Span(first, first + 1), "ac")})) == (3, 3)


@pytest.mark.usefixtures("way")
def test_a_gap_that_only_crashed_observers_show_breaks_the_uniform_form() -> None:
    run = delivering("p: ab!\nq: bc\nr: bc")
    assert counts(gapless(run, {"q": (EVERYWHERE, "a")})) == (0, 1)


@pytest.mark.usefixtures("way")
def test_a_crashed_process_with_a_gap_breaks_the_uniform_form() -> None:
    assert counts(gapless(delivering("p: ab\nq: b!"), {"q": (EVERYWHERE, "a")})) == (0, 1)


@pytest.mark.usefixtures("way")
def test_a_message_owed_in_two_spans_is_one_gap() -> None:
    run = delivering("p: abc\nq: bc")
    first = int(run.start[run.processes.index("q")])
    a = next(m for m in range(run.message_count) if run.name(m) == "a")
    spans = (Span(first, first + 1), Span(first + 1, OPEN))
    blocks = [MissingInSpan(0, span, np.array([a], np.int32)) for span in spans]
    orders = check_total(run, 20)
    found = check_gapless(run, [[], blocks], orders.disordered, orders.disordered_uniform, 20)
    assert counts(found) == (1, 1)


@pytest.mark.usefixtures("way")
def test_where_records_are_lost_a_gap_is_a_doubt() -> None:
    found = gapless(delivering("p: ab\nq: b?"), {"q": (EVERYWHERE, "a")}).plain
    assert (found.violations, found.doubts) == (0, 1)
    assert found.reasons == [
        "p delivers a before b; q delivers b and never a; records of q are lost"
    ]


def test_who_follows_the_common_order_is_no_stray() -> None:
    order = common_order(delivering("p: abc\nq: abc\nr: acb"))
    assert {group: strays.tolist() for group, strays in order.strays.items()} == {0: [2]}
    assert NONE not in order.rank


def test_an_inversion_in_a_group_is_an_inversion_for_gapless() -> None:
    found = gapless(delivering("p: ab\nq: ba\nr: ab"), {})
    assert counts(found) == (2, 2)
    assert found.plain.evidence[0][0].startswith("no single order fits: q delivers b before a")
