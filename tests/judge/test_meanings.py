"""People are told of every property in words, and first of what happened."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from notation import trace
from ordercast.judge.headline import headline, headline_of_run, what_is_wrong
from ordercast.judge.meanings import FAMILIES, broken, meaning, title
from ordercast.judge.outcome import Expectation, Outcome
from ordercast.trace.schema import PROPERTIES
from reported import CLEAN, CUT, OPPOSITE, SWAPPED, run_of


@pytest.mark.parametrize("name", PROPERTIES)
def test_every_property_has_a_sentence_for_people(name: str) -> None:
    told = (title(name), meaning(name), broken(name, 1), broken(name, 1234))
    assert all(told) and "not known" not in meaning(name)
    assert not [one for one in told if "{" in one or re.search(r"\b\w+[._]\w+", one)]
    assert told[0][0].isupper() and told[2][0].isupper() | told[2][0].isdigit()
    assert "1,234" in told[3]


def test_no_two_properties_have_the_same_words() -> None:
    for words in (title, meaning, lambda name: broken(name, 2)):
        assert len({words(name) for name in PROPERTIES}) == len(PROPERTIES)


def test_every_property_is_of_one_family() -> None:
    beginnings = [start for _, several in FAMILIES for start in several]
    for name in PROPERTIES:
        assert sum(name.startswith(start) for start in beginnings) == 1, name


def test_an_order_that_is_not_known_keeps_its_name() -> None:
    assert title("zigzag") == "The order “zigzag”"
    assert meaning("zigzag") == "an order that is not known here"


def test_the_headline_of_a_run_says_what_happened() -> None:
    swapped = trace(SWAPPED)
    assert headline_of_run(run_of(swapped, "fifo.group")) == (
        "FIFO order within each group was broken once"
    )
    assert headline_of_run(run_of(swapped, "fifo.global", "causal.global")) == (
        "FIFO order was broken once; 1 more property is violated"
    )
    several = ("total.pairwise", "total.group", "total.gapless")
    assert headline_of_run(run_of(trace(OPPOSITE), *several)) == (
        "Pairwise total order was broken once; 2 more properties are violated"
    )
    assert headline_of_run(run_of(swapped, "fifo.group.uniform")) == (
        "FIFO order within each group was broken once, counting processes that crashed"
    )


def test_the_headline_of_a_run_says_what_is_undecided_and_what_holds() -> None:
    open_ = "Nothing is violated, but this could not be decided: Agreement"
    assert headline_of_run(run_of(trace(CUT), "agreement", "fifo.group")) == open_
    assert headline_of_run(run_of(trace(CLEAN), "views", "vsync")) == (
        "Nothing is violated, but 2 properties could not be decided"
    )
    assert headline_of_run(run_of(trace(CLEAN))) == "All 4 properties expected of this run hold"
    held = "The expected property holds: Causal order"
    assert headline_of_run(run_of(trace(CLEAN), "causal.global")) == held


def test_the_headline_of_several_runs_counts_runs() -> None:
    good, bad = run_of(trace(CLEAN), run="r1"), run_of(trace(SWAPPED), "fifo.group", run="r2")
    open_ = run_of(trace(CUT), "agreement", run="r3")
    assert headline(Outcome((good, bad, bad))) == "2 of 3 runs break what is expected of them"
    assert headline(Outcome((good, bad, open_))) == "1 of 3 runs breaks what is expected of them"
    assert headline(Outcome((good, open_))) == "Nothing is violated, but 1 of 2 runs is undecided"
    assert headline(Outcome((good, good))) == "All 2 runs keep what is expected of them"


def test_what_is_wrong_is_told_with_the_name_of_the_property_and_an_unknown_order_too() -> None:
    run = run_of(trace(SWAPPED), "fifo.group", "no_duplication", "views")
    run = replace(run, expected=(*run.expected, Expectation("zigzag", "n/a", "declared: zigzag")))
    assert what_is_wrong(run) == [
        ("FIFO order within each group was broken once", "fifo.group"),
        ("Could not be decided: Consistent views", "views"),
        ("Could not be decided: The order “zigzag”", "zigzag"),
    ]
