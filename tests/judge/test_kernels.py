"""Each kernel on traces small enough to check by eye, with the witness it must name."""

from __future__ import annotations

import pytest

from notation import trace
from ordercast.judge.kernels.judge import Judged, judge_table
from ordercast.trace.oracle import verdicts
from ordercast.trace.schema import PROPERTIES
from ordercast.trace.tables import event_table


def judge(text: str, *, witnesses: int = 20) -> dict[str, Judged]:
    """All verdicts; on the way they are compared with the oracle's."""
    events = trace(text)
    judged = {j.property: j for j in judge_table(event_table(events), witnesses=witnesses)}
    assert {name: one.verdict for name, one in judged.items()} == verdicts(events)
    return judged


def only_evidence(judged: Judged) -> tuple[str, dict[str, object]]:
    assert judged.verdict == "violated"
    [evidence] = judged.findings.evidence
    return evidence


def test_the_32_names_come_in_their_order() -> None:
    assert tuple(judge("p: send a g; deliver a g; end")) == PROPERTIES


def test_a_clean_run_is_ok_everywhere_it_can_be_asked() -> None:
    found = judge("p: send a g; deliver a g; end\nq: deliver a g; end")
    views = ("views", "vsync", "sending_view")
    assert {n for n in PROPERTIES if found[n].verdict == "n/a"} == set(views)
    assert all(found[n].verdict == "ok" for n in PROPERTIES if n not in views)


def test_a_fifo_inversion_names_the_observer_and_both_messages() -> None:
    found = judge("p: send a g; send b g; end\nq: deliver b g; deliver a g; end")
    sentence, witness = only_evidence(found["fifo.group"])
    assert sentence == "q delivers b before a, but p sent a before b"
    assert (witness["process"], witness["messages"]) == ("q", ["a", "b"])


def test_a_fifo_gap_names_what_is_missing() -> None:
    found = judge("group g: q\np: send a g; send b g; end\nq: deliver b g; end")
    _, witness = only_evidence(found["fifo.group"])
    assert witness["missing"] == {"process": "q", "message": "a"}


def test_order_between_groups_is_no_matter_for_the_group_forms() -> None:
    found = judge("p: send a g; send b h; end\nq: deliver b h; deliver a g; end")
    assert found["fifo.group"].verdict == found["causal.group"].verdict == "ok"
    assert found["fifo.global"].verdict == found["causal.global"].verdict == "violated"


def test_a_causal_inversion_shows_how_the_replier_knew() -> None:
    found = judge(
        "p: send a g; end\nq: deliver a g; send b g; end\nr: deliver b g; deliver a g; end"
    )
    assert found["fifo.global"].verdict == "ok"
    sentence, witness = only_evidence(found["causal.global"])
    assert sentence == "r delivers b before a, but the send of a happened before that of b"
    events = witness["events"]
    assert isinstance(events, list)
    assert {"process": "q", "index": 1, "kind": "deliver", "message": "a", "group": "g"} in events


def test_a_long_causal_chain_is_shown_link_by_link() -> None:
    """a -> x (same sender) -> y (r delivers x) -> b (s delivers y)."""
    found = judge(
        "p: send a g; send x g; end\nr: deliver x g; send y g; end\n"
        "s: deliver y g; send b g; end\nq: deliver b g; deliver a g; end"
    )
    evidence = found["causal.global"].findings.evidence
    chains = [w["chain"] for _, w in evidence if w["messages"] == ["a", "b"]]
    assert chains == [["a", "x", "y", "b"]]


def test_a_three_way_cycle_breaks_total_order_but_no_pair() -> None:
    found = judge(
        "p: deliver a g; deliver b g; end\n"
        "q: deliver b g; deliver c g; end\n"
        "r: deliver c g; deliver a g; end"
    )
    assert found["total.pairwise"].verdict == "ok"
    _, witness = only_evidence(found["total.group"])
    cycle = witness["cycle"]
    assert isinstance(cycle, list)
    assert {(e["process"], e["before"], e["after"]) for e in cycle} == {
        ("p", "a", "b"), ("q", "b", "c"), ("r", "c", "a"),
    }  # fmt: skip


def test_opposite_orders_name_both_processes() -> None:
    found = judge("p: deliver a g; deliver b g; end\nq: deliver b g; deliver a g; end")
    _, witness = only_evidence(found["total.pairwise"])
    assert witness["processes"] == ["p", "q"]


def test_a_crashed_observer_breaks_only_the_uniform_form() -> None:
    found = judge("p: deliver a g; deliver b g; end\nq: deliver b g; deliver a g; crash")
    assert found["total.group"].verdict == "ok"
    assert found["total.group.uniform"].verdict == "violated"
    assert found["hybrid.kindberg.uniform"].verdict == "violated"


def test_a_skipped_message_is_a_gap_in_total_order() -> None:
    found = judge("group g: p,q\np: deliver a g; deliver b g; end\nq: deliver b g; end")
    sentence, witness = only_evidence(found["total.gapless"])
    assert sentence == "p delivers a before b; q delivers b and never a"
    assert witness["missing"] == {"process": "q", "message": "a"}


def test_lost_records_turn_a_gap_into_a_doubt() -> None:
    found = judge("group g: p,q\np: deliver a g; deliver b g; end\nq: lost; deliver b g; end")
    assert found["total.gapless"].verdict == "inconclusive"
    assert found["total.gapless"].findings.reasons == [
        "p delivers a before b; q delivers b and never a; records of q are lost"
    ]


def test_a_late_joiner_owes_nothing_that_is_concurrent_with_its_join() -> None:
    found = judge("p: send a g; send b g; end\nq: join g; deliver b g; end")
    assert found["fifo.group"].verdict == "ok"


def test_a_joiner_owes_what_was_sent_after_the_sender_heard_of_its_join() -> None:
    found = judge(
        "p: deliver hello h; send a g; send b g; end\nq: join g; send hello h; deliver b g; end"
    )
    assert found["fifo.group"].verdict == "violated"


def test_a_cycle_in_happened_before_is_found_and_the_rest_still_judged() -> None:
    found = judge(
        "p: deliver b g; send a g; end\nq: deliver a g; send b g; end\n"
        "r: deliver a g; deliver b g; end"
    )
    assert found["wellformed"].verdict == found["no_creation"].verdict == "violated"
    assert found["causal.global"].verdict == "violated"  # each was sent before the other
    assert found["total.group"].verdict == "ok"


def test_agreement_needs_an_end_to_be_violated() -> None:
    text = "group g: p,q\np: send a g; deliver a g; end\nq: {}"
    assert judge(text.format("end"))["agreement"].verdict == "violated"
    assert judge(text.format("receive a g"))["agreement"].verdict == "inconclusive"
    assert judge(text.format("crash"))["agreement"].verdict == "ok"


def test_agreement_is_open_while_nobody_who_delivered_has_an_end() -> None:
    found = judge("group g: p,q\np: send a g; deliver a g\nq: end")
    assert found["agreement"].verdict == "inconclusive"
    assert found["agreement.uniform"].verdict == "violated"


def test_a_message_from_outside_that_nobody_delivers_needs_the_end_of_its_sender() -> None:
    text = "group g: q\np: send a g{}\nq: deliver b g from r; end"
    assert judge(text.format("; end"))["validity"].verdict == "violated"
    assert judge(text.format(""))["validity"].verdict == "inconclusive"


def test_nothing_of_a_later_view_is_owed_before_that_view_is_installed() -> None:
    text = "p: view 1 g p,q; view 2 g p,q; send a g; send b g; end\nq: view 1 g p,q; {}; {}; end"
    late = judge(text.format("deliver b g", "view 2 g p,q"))
    assert late["fifo.group"].verdict == "ok"
    assert late["sending_view"].verdict == "violated"
    in_time = judge(text.format("view 2 g p,q", "deliver b g"))
    assert in_time["fifo.group"].verdict == "violated"


def test_vsync_tells_the_difference_between_two_sets() -> None:
    found = judge(
        "p: view 1 g p,q; send a g; deliver a g; view 2 g p,q; end\n"
        "q: view 1 g p,q; view 2 g p,q; deliver a g; end"
    )
    _, witness = only_evidence(found["vsync"])
    assert witness["only"] == {"p": ["a"], "q": []}
    assert found["sending_view"].verdict == "violated"
    assert found["views"].verdict == "ok"


def test_a_view_with_two_lists_is_shown_with_both() -> None:
    found = judge("p: view 1 g p,q; end\nq: view 1 g q,p; end")
    _, witness = only_evidence(found["views"])
    assert witness["lists"] == [["p", "q"], ["q", "p"]]


@pytest.mark.parametrize("kept", [0, 2])
def test_all_violations_are_counted_and_only_some_kept(kept: int) -> None:
    repeats = "; ".join(["deliver a g"] * 6)
    found = judge(f"p: send a g; {repeats}; end", witnesses=kept)["no_duplication"]
    assert found.verdict == "violated"
    assert found.findings.violations == 5
    assert len(found.findings.evidence) == kept
