"""validity and agreement, with the witnesses they name."""

from __future__ import annotations

from ordercast.judge.kernels import liveness
from ordercast.judge.kernels.findings import Findings
from ordercast.judge.kernels.missing_deliveries import MissingDeliveries
from runs import members_of, run_of


def validity(text: str, limit: int = 20) -> Findings:
    run = run_of(text)
    members = members_of(run)
    return liveness.validity(run, members, MissingDeliveries(run, members), limit)


def agreement(text: str, limit: int = 20) -> tuple[Findings, Findings]:
    run = run_of(text)
    members = members_of(run)
    return liveness.agreement(run, members, MissingDeliveries(run, members), limit)


def test_a_member_delivers_its_own_messages() -> None:
    [(sentence, witness)] = validity("group g: p\np: send a g; end").evidence
    assert sentence == "p does not deliver its own a"
    assert witness["missing"] == {"process": "p", "message": "a"}


def test_who_leaves_later_need_not_deliver_its_own_messages() -> None:
    assert validity("p: join g; send a g; leave g; end").verdict == "ok"
    assert validity("p: join g; leave g; join g; send a g; end").verdict == "violated"


def test_only_what_was_sent_in_the_last_span_must_be_delivered() -> None:
    found = validity("p: join g; send a g; leave g; join g; send b g; end")
    assert [sentence for sentence, _ in found.evidence] == ["p does not deliver its own b"]


def test_a_crashed_sender_owes_nothing_and_a_cut_one_perhaps() -> None:
    assert validity("group g: p\np: send a g; crash").verdict == "ok"
    assert validity("group g: p\np: send a g").reasons == [
        "p does not deliver its own a; the log of p has no end"
    ]


OUTSIDE = "group g: q,r\np: send a g; send b g; end\n"


def test_one_member_that_delivers_is_enough_for_a_message_from_outside() -> None:
    assert validity(OUTSIDE + "q: end\nr: deliver a g; deliver b g; end").verdict == "ok"


def test_a_message_from_outside_that_no_member_delivers_is_named() -> None:
    [(sentence, _)] = validity(OUTSIDE + "q: deliver b g; end\nr: end").evidence
    assert sentence == "no member delivers a, sent by p from outside the group"


def test_one_member_without_end_leaves_a_message_from_outside_open() -> None:
    found = validity(OUTSIDE + "q: deliver b g; end\nr: receive a g")
    assert (found.violations, found.doubts) == (0, 1)


def test_a_sender_without_end_leaves_its_message_from_outside_open() -> None:
    found = validity("group g: q\np: send a g\nq: end")
    assert (found.violations, found.doubts) == (0, 1)


def test_where_all_members_crashed_nobody_owes_a_message_from_outside() -> None:
    assert validity(OUTSIDE + "q: crash\nr: crash").verdict == "ok"


ONE_LACKS = "group g: p,q\np: send a g; send b g; deliver a g; deliver b g; {}\nq: deliver a g; {}"


def test_what_one_delivers_the_other_must() -> None:
    plain, uniform = agreement(ONE_LACKS.format("end", "end"))
    [(sentence, witness)] = plain.evidence
    assert sentence == "q never delivers b of p, which p delivers"
    assert plain.evidence == uniform.evidence
    events = witness["events"]
    assert isinstance(events, list)
    assert [(e["process"], e["kind"]) for e in events] == [("p", "send"), ("p", "deliver")]


def test_what_only_a_crashed_process_delivers_binds_in_the_uniform_form() -> None:
    plain, uniform = agreement(ONE_LACKS.format("crash", "end"))
    assert (plain.verdict, uniform.verdict) == ("ok", "violated")


def test_the_plain_form_needs_the_end_of_one_that_delivers() -> None:
    plain, uniform = agreement(ONE_LACKS.format("receive a g", "end"))
    assert (plain.verdict, uniform.verdict) == ("inconclusive", "violated")
    assert plain.reasons == [
        "q never delivers b of p, which p delivers; the logs that would prove it have no end"
    ]


def test_lost_records_leave_agreement_open() -> None:
    plain, uniform = agreement(ONE_LACKS.format("end", "lost; end"))
    assert (plain.verdict, uniform.verdict) == ("inconclusive", "inconclusive")


def test_everything_is_counted_and_only_some_is_shown() -> None:
    sends = "; ".join(f"send m{k} g; deliver m{k} g" for k in range(9))
    plain, uniform = agreement(f"group g: p,q\np: {sends}; end\nq: end", limit=2)
    assert (plain.violations, len(plain.evidence)) == (9, 2)
    assert (uniform.violations, len(uniform.evidence)) == (9, 2)
