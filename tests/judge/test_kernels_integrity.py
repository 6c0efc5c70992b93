"""wellformed, no_duplication, no_creation and membership, with the witnesses they name."""

from __future__ import annotations

import pytest

from notation import trace
from ordercast.judge.kernels import integrity
from ordercast.judge.kernels.causal_knots import CausalKnots
from ordercast.judge.kernels.findings import Findings
from ordercast.judge.kernels.load import build_run
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table
from runs import causality_of, members_of, run_of, use_kernels

ROUND = (
    "p: deliver c g; send a g; end\nq: deliver a g; send b g; end\n"
    "r: deliver b g; send c g; deliver a g; end\ns: deliver a g; send d g; end"
)


@pytest.fixture(params=["plain", "compiled"])
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_kernels(request.param, monkeypatch)


def wellformed(text: str) -> Findings:
    run = run_of(text)
    return integrity.wellformed(run, causality_of(run), 20)


def no_creation(text: str) -> Findings:
    run = run_of(text)
    return integrity.no_creation(run, causality_of(run), 20)


def sentences(found: Findings) -> list[str]:
    return [sentence for sentence, _ in found.evidence]


def test_equal_indexes_count_within_a_log_only() -> None:
    events = [
        Event("p", 1, "send", "a", "g"),
        Event("p", 1, "send", "b", "g"),
        Event("q", 1, "deliver", "a", "g"),
    ]
    run = build_run(event_table(events))
    found = integrity.wellformed(run, causality_of(run), 20)
    assert found.evidence == [("p has two events with index 1", {"process": "p", "index": 1})]


def test_an_event_after_the_end_is_named_once_per_log() -> None:
    found = wellformed("p: end; send a g; send b g; crash\nq: crash")
    assert sentences(found) == ["p has a send after its end"]
    assert found.violations == 1


@pytest.mark.parametrize("last", ["crash", "end"])
@pytest.mark.parametrize(("after", "kind"), [("send b g", "send"), ("deliver a g", "deliver")])
def test_neither_a_crash_nor_an_end_has_anything_after_it(last: str, after: str, kind: str) -> None:
    found = wellformed(f"p: send a g; {last}; {after}\nq: deliver a g; end")
    assert sentences(found) == [f"p has a {kind} after its {last}"]


def test_a_second_send_is_shown_with_the_first() -> None:
    found = wellformed("p: send a g; send a g; end")
    [(sentence, witness)] = found.evidence
    assert sentence == "a is sent more than once"
    assert [event["index"] for event in witness["events"]] == [1, 2]


@pytest.mark.usefixtures("_form")
def test_a_causal_cycle_is_shown_step_by_step_and_nothing_beside_it() -> None:
    [(_, witness)] = wellformed(ROUND).evidence
    steps = witness["round"]
    assert isinstance(steps, list)
    assert {(s["process"], s["delivers"], s["sends"]) for s in steps} == {
        ("p", "c", "a"), ("q", "a", "b"), ("r", "b", "c"),
    }  # fmt: skip
    for one, following in zip(steps, [*steps[1:], steps[0]], strict=True):
        assert one["delivers"] == following["sends"]


@pytest.mark.usefixtures("_form")
def test_each_knot_is_one_violation() -> None:
    found = wellformed(
        "p: deliver a g; send a g; end\nq: deliver a g; deliver b g; send b g; deliver b g; end"
    )
    assert sentences(found) == [
        "happened-before has a cycle: p delivers a before it sends a",
        "happened-before has a cycle: q delivers b before it sends b",
    ]


@pytest.mark.usefixtures("_form")
def test_what_is_delivered_before_it_is_sent_lies_on_the_cycle() -> None:
    run = run_of(ROUND)
    early = CausalKnots(run).too_early
    named = {(run.processes[run.process_of(row)], run.name(run.message[row]))
             for row in run.delivered_row[early].tolist()}  # fmt: skip
    assert named == {("p", "c"), ("q", "a"), ("r", "b")}
    assert len(no_creation(ROUND).evidence) == 3


def test_a_way_between_two_cycles_is_part_of_none() -> None:
    """x -> y goes from the one cycle to the other; it lies on neither."""
    found = no_creation(
        "p: deliver a g; send a g; send x g; end\n"
        "q: deliver x g; send y g; end\n"
        "r: deliver y g; deliver b g; send b g; end"
    )
    assert sentences(found) == ["p delivers a before p sends it", "r delivers b before r sends it"]


def test_an_unsent_message_is_proved_by_the_complete_log_of_the_named_sender() -> None:
    text = "p: deliver x g from q; end\nq: {}"
    assert sentences(no_creation(text.format("end"))) == ["p delivers x, which q has not sent"]
    assert no_creation(text.format("lost; end")).reasons == [
        "p delivers x, which q is not known to have sent; its log is incomplete or absent"
    ]
    assert no_creation("p: deliver x g from z; end").verdict == "inconclusive"


def test_an_unsent_message_of_no_named_sender_is_proved_by_all_logs() -> None:
    text = "p: deliver x g; end\nq: send a g{}"
    assert sentences(no_creation(text.format("; end"))) == ["p delivers x, which nobody has sent"]
    assert no_creation(text.format("")).verdict == "inconclusive"


def test_an_unsent_message_belongs_to_the_lowest_group_by_name_that_a_delivery_names() -> None:
    run = run_of("p: send a h; deliver x h; deliver y k; end\nq: deliver x g; deliver y k")
    of = {run.name(m): run.groups[g] for m, g in enumerate(run.group_of.tolist())}
    assert of == {"a": "h", "x": "g", "y": "k"}


def test_a_delivery_in_another_group_names_both_groups() -> None:
    [(_, witness)] = no_creation("p: send a g; deliver a h; end").evidence
    assert witness["groups"] == ["g", "h"]


def test_a_delivery_too_early_and_in_another_group_is_one_violation() -> None:
    assert no_creation("p: deliver a h; send a g; end").violations == 1


def test_a_run_of_declarations_only_is_in_order() -> None:
    events = [Event(None, None, "group", group=g, members=()) for g in ("g", "h")]
    run = build_run(event_table(events))
    assert integrity.wellformed(run, causality_of(run), 20).verdict == "ok"
    assert integrity.no_creation(run, causality_of(run), 20).verdict == "ok"


def test_a_repeated_delivery_is_shown_with_the_first_one() -> None:
    run = build_run(event_table(trace("p: send a g; deliver a g; deliver a g; end")))
    [(sentence, witness)] = integrity.no_duplication(run, 20).evidence
    assert sentence == "p delivers a more than once"
    events = witness["events"]
    assert isinstance(events, list)
    assert [event["index"] for event in events] == [1, 2, 3]


def test_a_delivery_outside_of_every_span_breaks_membership() -> None:
    run = run_of("p: send a g; send b g; end\nq: deliver a g; join g; deliver b g; end")
    assert sentences(integrity.membership(run, members_of(run), 20)) == [
        "q delivers a while it is no member of g"
    ]
