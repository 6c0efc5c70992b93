"""views, vsync and sending_view, with the witnesses they name."""

from __future__ import annotations

import pytest

from ordercast.errors import TraceError
from ordercast.judge.kernels import views, vsync
from ordercast.judge.kernels.findings import Findings
from runs import members_of, run_of, use_kernels


@pytest.fixture(params=["plain", "compiled"])
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_kernels(request.param, monkeypatch)


def check_views(text: str) -> list[str]:
    run = run_of(text)
    return [sentence for sentence, _ in views.check_views(run, members_of(run), 20).evidence]


def check_vsync(text: str) -> Findings:
    run = run_of(text)
    return vsync.check_vsync(run, members_of(run), 20)


def test_two_lists_of_one_view_are_shown_where_they_are_recorded() -> None:
    run = run_of("p: view 1 g p,q; end\nq: view 1 g q,p; end")
    [(_, witness)] = views.check_views(run, members_of(run), 20).evidence
    assert witness["lists"] == [["p", "q"], ["q", "p"]]
    events = witness["events"]
    assert isinstance(events, list)
    assert [event["process"] for event in events] == ["p", "q"]


def test_views_grow() -> None:
    assert check_views("p: view 2 g p; view 2 g p; end") == ["p installs view 2 of g after view 2"]


def test_a_notice_of_exclusion_is_no_view_without_oneself() -> None:
    assert check_views("p: view 1 g p,q; view 2 g q; end") == []
    assert check_views("p: view 1 g p; view 2 g q; view 3 g q; end") == [
        "p installs view 3 of g without being in it"
    ]
    assert check_views("p: view 1 g q; end") == ["p installs view 1 of g without being in it"]


@pytest.mark.usefixtures("_form")
def test_neither_the_order_nor_another_group_makes_a_difference() -> None:
    text = "{}: view 1 g p,q; {}; view 2 g p,q; end"
    one = text.format("p", "deliver a g; deliver b g; deliver x h")
    other = text.format("q", "deliver b g; deliver a g")
    assert check_vsync(f"{one}\n{other}").verdict == "ok"


@pytest.mark.usefixtures("_form")
def test_the_difference_is_told_both_ways() -> None:
    found = check_vsync(
        "p: view 1 g p,q; deliver a g; deliver b g; view 2 g p,q; end\n"
        "q: view 1 g p,q; deliver b g; deliver c g; view 2 g p,q; end"
    )
    [(sentence, witness)] = found.evidence
    assert sentence == "between views 1 and 2 of g only p delivered a and only q delivered c"
    assert witness["only"] == {"p": ["a"], "q": ["c"]}
    assert witness["differing"] == 2


def test_a_long_difference_is_shown_in_part_and_counted_in_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vsync, "SHOWN_MESSAGES", 2)
    many = "; ".join(f"deliver m{k} g" for k in range(5))
    found = check_vsync(
        f"p: view 1 g p,q; {many}; view 2 g p,q; end\nq: view 1 g p,q; view 2 g p,q; end"
    )
    [(_, witness)] = found.evidence
    assert (witness["only"], witness["differing"]) == ({"p": ["m0", "m1"], "q": []}, 5)


def test_only_a_shared_change_of_view_is_compared() -> None:
    found = check_vsync(
        "p: view 1 g p,q; deliver a g; view 2 g p,q; end\n"
        "q: view 1 g p,q; view 3 g p,q; deliver b g; end"
    )
    assert found.verdict == "ok"


def test_a_difference_that_involves_lost_records_is_a_doubt() -> None:
    text = "{}: view 1 g p,q; {}; view 2 g p,q; end"
    found = check_vsync(f"{text.format('p', 'deliver a g')}\n{text.format('q', 'lost')}")
    assert (found.violations, found.doubts) == (0, 1)


def test_who_goes_the_same_way_twice_is_not_compared_with_itself() -> None:
    twice = "view 1 g p,q; deliver a g; view 2 g p,q; view 1 g p,q; view 2 g p,q"
    assert check_vsync(f"p: {twice}; end").verdict == "ok"
    found = check_vsync(f"p: {twice}; end\nq: view 1 g p,q; deliver a g; view 2 g p,q; end")
    [(_, witness)] = found.evidence
    assert sorted(witness["processes"]) == ["p", "q"]


@pytest.mark.usefixtures("_form")
def test_a_delivery_in_another_view_or_in_none_names_both() -> None:
    run = run_of(
        "p: view 1 g p,q; send a g; deliver a g; end\n"
        "q: view 1 g p,q; view 2 g p,q; deliver a g; end\nr: deliver a g; end"
    )
    found = views.check_sending_view(run, members_of(run), 20)
    assert [sentence for sentence, _ in found.evidence] == [
        "q delivers a in view 2, it was sent in view 1 of g",
        "r delivers a in no view, it was sent in view 1 of g",
    ]
    assert [witness["delivered_in"] for _, witness in found.evidence] == [2, None]


def test_what_is_sent_outside_of_every_view_may_be_delivered_in_any() -> None:
    run = run_of("p: send a g; end\nq: view 1 g q; deliver a g; end")
    assert views.check_sending_view(run, members_of(run), 20).verdict == "ok"


def test_the_highest_number_is_no_view_id() -> None:
    """It stands for "in no view", and is refused instead of taken for that."""
    with pytest.raises(TraceError, match="view ids must be below 9223372036854775807"):
        run_of(f"p: view {2**63 - 1} g p; send a g; deliver a g; end")
    run_of(f"p: view {2**63 - 2} g p; send a g; deliver a g; end")
