"""Every rule that `invariants()` of a node can report is one that can fail: a node that was put
wrong by hand breaks it, and no other."""

from __future__ import annotations

import re

import pytest

from tests.views.moments import MOMENTS, node_that
from tests.views.rules import all_rules, noted
from tests.views.spoiled import SPOILED


def test_every_rule_has_a_node_that_breaks_it():
    rules = all_rules()
    assert len(rules) == len(set(rules)) > 70, "the rules are found, and differ"
    assert SPOILED.keys() == set(rules)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_node_of_a_run_breaks_none(moment):
    node = node_that(moment)
    with noted() as broken:
        node.invariants()
    assert not broken


@pytest.mark.parametrize("rule", SPOILED)
def test_a_node_that_is_put_wrong_breaks_this_rule_alone(rule):
    moment, spoil = SPOILED[rule]
    node = node_that(moment)
    spoil(node)
    with noted() as broken:
        node.invariants()
    assert broken == {rule}


@pytest.mark.parametrize("rule", SPOILED)
def test_the_rule_is_reported_in_its_own_words(rule):
    moment, spoil = SPOILED[rule]
    node = node_that(moment)
    spoil(node)
    said = re.sub(r" \(\d+\)$", "", rule.partition(": ")[2])
    with pytest.raises(AssertionError) as caught:
        node.invariants()
    assert str(caught.value).splitlines()[0] == said
