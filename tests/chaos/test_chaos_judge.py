"""The outside judge on made-up logs: it accepts what is allowed, and each promise can be broken."""

from __future__ import annotations

import pytest

from chaos.judge import CHECKS, judge
from chaos_logs import MadeUp

BROKEN_HERE = {  # every check has a test below that makes it speak
    "recovery", "no failure", "no end", "no creation", "no duplication", "membership",
    "one history", "agreement", "uniformity", "nothing lost", "fifo", "causal",
    "total across groups",
}  # fmt: skip


def test_every_check_of_the_judge_is_broken_by_a_test() -> None:
    assert set(CHECKS) == BROKEN_HERE


def test_a_run_in_which_nothing_is_wrong_has_no_findings() -> None:
    run = MadeUp(order="total")
    run.members("a", "b", "c")
    one, two = run.send("a", "1"), run.send("b", "1")
    run.everybody_gets(one, two)
    assert run.findings() == []


# -- nobody hangs, nobody ends --------------------------------------------------------------------


def test_a_run_that_does_not_settle_is_found() -> None:
    run = MadeUp(order="total")
    run.members("a", "b")
    assert {f.property for f in judge(run.plan, run.outcome, list(run.logs.values()))} == {
        "recovery"
    }


def test_an_exception_that_no_program_expects_is_found_with_its_last_line() -> None:
    run = MadeUp(order="total")
    run.members("a")
    run.note("a", "failed", "read", "Traceback\n  somewhere\nKeyError: 'AskHolding'")
    (finding,) = run.findings()
    assert finding.property == "no failure"
    assert finding.sentence == "a.1, read: KeyError: 'AskHolding'"


def test_a_process_that_ends_by_itself_or_does_not_close_is_found() -> None:
    run = MadeUp(order="total")
    run.members("a", "b")
    run.outcome.ended = {"a.1": 1}
    run.outcome.unclosed = ["b.1"]
    assert [finding.property for finding in run.findings()] == ["no end", "no end"]


# -- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["never sent", "other body", "other sender", "before it was sent"])
def test_a_message_that_was_not_sent_so_is_found(how: str) -> None:
    run = MadeUp(protocol="reliable")
    run.members("a", "b")
    if how == "before it was sent":
        run.get("b", "a.1/1")
    message = run.send("a", "1")
    run.get("a", message)
    if how == "never sent":
        run.get("b", message)
        run.everybody_gets("a.1/2")
    if how == "other body":
        run.note("b", "got", "g0", "a", message, 8)
    if how == "other sender":
        run.note("b", "got", "g0", "b", message, 7)
    assert run.broken() == {"no creation"}


def test_a_message_in_another_group_than_it_was_sent_to_is_found() -> None:
    run = MadeUp(groups=2, protocol="reliable")
    run.members("a", "b")
    run.members("a", "b", group="g1")
    message = run.send("a", "1")
    run.everybody_gets(message)
    run.get("a", message, group="g1")
    run.get("b", message, group="g1")
    assert run.broken() == {"no creation"}


def test_a_message_that_is_delivered_twice_is_found() -> None:
    run = MadeUp(protocol="reliable")
    run.members("a", "b")
    message = run.send("a", "1")
    run.everybody_gets(message)
    run.get("b", message)
    assert run.broken() == {"no duplication"}


def cut_off_and_resumed(*, lost: bool) -> MadeUp:
    """b is NotPrimary for a while, and is told again the view that it was in."""
    run = MadeUp(order="total")
    run.members("a", "b")
    run.everybody_gets(run.send("a", "1"))
    second = run.send("a", "2")
    run.get("a", second)
    run.note("b", "out", "NotPrimary", "", 1, ["a"])
    run.view("b", 1, ("a", "b"), joined=("b",))
    if not lost:
        run.get("b", second)
    for name in ("a", "b"):
        run.view(name, 2, ("a", "b", "c"), joined=("c",))
    return run


def test_one_that_was_cut_off_and_missed_nothing_goes_on_in_its_view() -> None:
    assert cut_off_and_resumed(lost=False).broken() == set()


def test_what_was_lost_while_it_was_cut_off_is_found() -> None:
    assert "agreement" in cut_off_and_resumed(lost=True).broken()


def test_a_message_may_come_again_to_one_that_was_excluded_and_is_back() -> None:
    run = MadeUp(protocol="reliable")
    run.members("a", "b")
    message = run.send("a", "1")
    run.get("b", message)
    run.note("b", "out", "Excluded", "")
    run.view("a", 2, ("a",))
    run.view("a", 3, ("a", "b"), joined=("b",))
    run.view("b", 3, ("a", "b"), joined=("b",))
    run.everybody_gets(message)
    assert run.findings() == []


def test_a_delivery_before_the_first_view_is_found() -> None:
    run = MadeUp(order="total")
    run.note("b", "up", 1)
    message = run.send("a", "1")
    run.get("b", message)
    assert run.broken() == {"membership"}


def test_a_view_without_its_process_is_found_unless_the_process_leaves() -> None:
    run = MadeUp(order="total")
    run.members("a", "b")
    run.view("a", 2, ("b",))
    assert run.broken() == {"membership"}
    leaving = MadeUp(order="total")
    leaving.members("a", "b")
    leaving.note("a", "leave", "g0")
    leaving.view("a", 2, ("b",))
    leaving.view("b", 2, ("b",))
    assert leaving.findings() == []


def test_the_last_view_of_one_that_has_left_may_be_read_after_the_leave_has_returned() -> None:
    run = MadeUp(order="total")
    run.members("a", "b")
    run.note("a", "leave", "g0")
    run.note("a", "left", "g0")
    run.note("a", "join", "g0")
    for name in "ab":
        run.view(name, 2, ("b",))
        run.view(name, 3, ("b", "a"), joined=("a",))
    assert run.findings() == []


def test_view_numbers_that_do_not_rise_are_found() -> None:
    run = MadeUp(order="total")
    run.members("a", number=5)
    run.view("a", 4, ("a", "b"))
    assert run.broken() == {"membership"}


# -- agreement ------------------------------------------------------------------------------------


def test_one_number_with_two_lists_of_members_is_found() -> None:
    run = MadeUp(order="total")
    run.members("a", "b", number=1)
    run.members("c", "d", number=1)
    assert run.broken() == {"one history"}


def test_two_next_views_of_one_view_are_found_unless_sides_may_go_on() -> None:
    for merges in (False, True):
        run = MadeUp(order="total", merges=merges)
        run.members("a", "b")
        run.view("a", 2, ("a",))
        run.view("b", 3, ("b",))
        assert run.broken() == (set() if merges else {"one history"})


@pytest.mark.parametrize("what", ["a newcomer", "an exclusion"])
def test_a_view_of_one_that_is_excluded_may_be_unknown_unless_it_excludes_somebody(
    what: str,
) -> None:
    run = MadeUp(order="total")
    run.members("a", "b", "c")
    run.view("a", 2, ("a", "b", "c", "d") if what == "a newcomer" else ("a",))
    run.note("a", "out", "Excluded", "", 3, [])
    for name in "bc":
        run.view(name, 3, ("b", "c"))
    assert run.broken() == (set() if what == "a newcomer" else {"one history"})


@pytest.mark.parametrize("end", ["a next view", "the end of the run"])
def test_a_message_that_one_of_those_who_stay_lacks_is_found(end: str) -> None:
    run = MadeUp(protocol="reliable")
    run.members("a", "b")
    message = run.send("a", "1")
    run.get("a", message)
    if end == "a next view":
        for name in "ab":
            run.view(name, 2, ("a", "b", "c"), joined=("c",))
    assert run.broken() == {"agreement"}


def test_another_order_is_found_where_the_order_is_total_and_only_there() -> None:
    for join, broken in (({"order": "total"}, {"agreement"}), ({"protocol": "reliable"}, set())):
        run = MadeUp(**join)
        run.members("a", "b", "c")
        one, two = run.send("a", "1"), run.send("b", "1")
        run.get("a", one, two)
        run.get("b", two, one)
        run.get("c", one, two)
        assert run.broken() - {"total across groups"} == broken


def test_what_one_that_is_killed_delivered_last_may_be_unknown_to_the_others() -> None:
    run = MadeUp(order="total")
    run.members("a", "b", "c")
    message = run.send("a", "1")
    run.get("a", message)
    run.kill("a")
    for name in "bc":
        run.view(name, 2, ("b", "c"))
    assert run.findings() == []


@pytest.mark.parametrize("what", ["lost", "in another order"])
def test_with_uniform_delivery_it_must_be_known_and_in_that_order(what: str) -> None:
    run = MadeUp(order="total", uniform=True)
    run.members("a", "b", "c")
    one, two = run.send("a", "1"), run.send("b", "1")
    run.get("a", one, two)
    for name in "bc":
        run.get(name, *((two,) if what == "lost" else (two, one)))
    run.kill("a")
    for name in "bc":
        run.view(name, 2, ("b", "c"))
    assert run.broken() == {"uniformity"}


def test_uniform_delivery_promises_nothing_when_half_of_the_view_is_gone() -> None:
    run = MadeUp(order="total", uniform=True)
    run.members("a", "b")
    message = run.send("a", "1")
    run.get("a", message)
    run.kill("a")
    run.view("b", 2, ("b",))
    assert run.findings() == []


def test_whoever_stays_and_never_hears_its_own_message_is_found() -> None:
    run = MadeUp(order="total")
    run.members("a", "b")
    run.send("a", "1")
    assert run.broken() == {"nothing lost"}


def test_a_message_may_be_lost_whose_call_raised_or_whose_sender_was_excluded_meanwhile() -> None:
    run = MadeUp(order="total")
    run.members("a", "b")
    run.note("a", "send", "g0", "a.1/1", 7, 1)
    run.note("a", "unsent", "a.1/1", "NotPrimary", "")
    run.note("a", "send", "g0", "a.1/2", 7, 1)
    run.note("a", "sent", "a.1/2", 2)
    assert run.findings() == []


# -- order ----------------------------------------------------------------------------------------


def test_a_later_message_of_a_sender_first_is_found() -> None:
    run = MadeUp(protocol="fifo")
    run.members("a", "b")
    one, two = run.send("a", "1"), run.send("a", "2")
    run.get("a", one, two)
    run.get("b", two, one)
    assert run.broken() == {"fifo"}


def test_a_message_that_is_left_out_between_two_of_one_sender_is_found() -> None:
    run = MadeUp(protocol="fifo")
    run.members("a", "b")
    one, two, three = (run.send("a", number) for number in "123")
    run.get("a", one, two, three)
    run.get("b", one, three)
    assert {"fifo"} <= run.broken()


def test_a_gap_between_two_incarnations_of_a_sender_is_allowed() -> None:
    run = MadeUp(protocol="fifo")
    run.members("b")
    run.note("a", "up", 1)  # a guest
    one, _, three = (run.send("a", n, incarnation=int(n)) for n in "123")
    run.get("b", one, three)
    assert run.findings() == []


def test_an_answer_before_the_question_is_found() -> None:
    run = MadeUp(protocol="vector")
    run.members("a", "b", "c")
    question = run.send("a", "1")
    run.get("a", question)
    run.get("b", question)
    answer = run.send("b", "1")
    run.get("a", answer)
    run.get("b", answer)
    run.get("c", answer, question)
    assert run.broken() == {"causal"}


def test_an_answer_without_the_question_is_found_though_the_only_one_who_heard_it_is_dead() -> None:
    run = MadeUp(protocol="vector")
    run.members("a", "b", "c")
    question = run.send("a", "1")
    run.get("b", question)
    answer = run.send("b", "1")
    run.kill("a")
    run.kill("b")
    run.get("c", answer)
    assert run.broken() == {"causal"}


def test_a_cause_in_another_group_counts_where_causal_order_goes_across_groups() -> None:
    for protocol, broken in (("cbcast", {"causal"}), ("vector", set())):
        run = MadeUp(groups=2, protocol=protocol)
        run.members("a", "b")
        run.members("a", "b", group="g1")
        one = run.send("a", "1")
        two = run.send("a", "2", group="g1")
        run.get("a", one)
        run.get("a", two, group="g1")
        run.get("b", two, group="g1")
        run.get("b", one)
        assert run.broken() == broken


def test_what_an_incarnation_of_before_had_heard_is_no_cause() -> None:
    run = MadeUp(protocol="vector")
    run.members("a", "b", "c")
    question = run.send("a", "1")
    run.get("b", question)
    run.kill("a")
    run.note("b", "out", "Excluded", "")
    run.view("c", 2, ("c",))
    run.note("b", "view", "g0", 3, ["c", "b"], ["b"], [], 2)
    run.view("c", 3, ("c", "b"), joined=("b",))
    answer = run.send("b", "1", incarnation=2)
    run.get("b", answer)
    run.get("c", answer)
    assert run.findings() == []


def test_a_call_that_outlives_an_incarnation_has_no_known_past() -> None:
    """It waited while its side of a partition went over to the other one, and left then."""
    run = MadeUp(protocol="vector", merges=True)
    run.members("a", "b")
    alone = run.send("a", "1")
    run.get("a", alone)
    run.view("a", 2, ("a",))
    run.view("b", 3, ("b",))
    run.note("a", "send", "g0", "a.1/2", 7, 1)
    run.note("a", "view", "g0", 4, ["b", "a"], ["a"], [], 2)
    run.note("b", "view", "g0", 4, ["b", "a"], ["a"], [], 1)
    run.note("a", "sent", "a.1/2", 2)
    run.get("a", "a.1/2")
    run.get("b", "a.1/2")
    reply = run.send("b", "1")
    run.everybody_gets(reply)
    assert run.findings() == []


def test_two_groups_in_another_order_at_two_members_are_found_where_that_is_promised() -> None:
    for order, broken in (("total", {"total across groups"}), ("hybrid", set())):
        run = MadeUp(groups=2, order=order)
        run.members("a", "b", "c", "d")
        run.members("a", "b", "c", "d", group="g1")
        one, two = run.send("a", "1"), run.send("b", "1", group="g1")
        for name in "abcd":
            if name == "c":
                run.get(name, one)
            run.get(name, two, group="g1")
            if name != "c":
                run.get(name, one)
        assert run.broken() == broken


def test_lines_after_the_end_of_a_run_do_not_count() -> None:
    run = MadeUp(order="total")
    run.members("a", "b")
    run.settle()
    run.note("a", "closing")
    run.view("b", 2, ("b",))
    message = run.send("b", "1")
    run.get("b", message, message)
    assert run.findings() == []
