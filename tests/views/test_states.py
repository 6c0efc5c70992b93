"""The tables of states are what the machines do: no other step, and no step that is never taken."""

from __future__ import annotations

import pytest

from ordercast.views import changes, flush, states
from ordercast.views.changes import Changes
from ordercast.views.states import COORDINATING, FLUSHES, TAKING_PART, Flushing, Lead, Stage
from tests.views.campaign import one
from tests.views.test_limits import LARGE, told_to_one_alone

TABLES = {Lead: COORDINATING, Stage: TAKING_PART, Flushing: FLUSHES}
RARE = {  # steps that need many runs, or sides that go on without a majority
    (Lead.ASKING, Lead.CATCHING_UP),
    (Lead.CATCHING_UP, Lead.ASKING),
    (Lead.CATCHING_UP, Lead.IDLE),
    (Lead.PREPARING, Lead.ASKING),
    (Lead.PREPARING, Lead.IDLE),
    (Stage.FETCHING, Stage.FETCHING),
    (Stage.FETCHING, Stage.UNTOLD),
    (Stage.READY, Stage.FETCHING),
    (Flushing.FETCHING, Flushing.RUNNING),
}


@pytest.mark.parametrize(("kind", "table"), TABLES.items())
def test_every_state_has_a_meaning_and_is_reached_from_the_first_and_left_again(kind, table):
    assert {a for a, _ in table} == {b for _, b in table} == set(kind) <= set(states.MEANINGS)
    reached, before = {next(iter(kind))}, set()
    while reached != before:
        before = set(reached)
        reached |= {b for a, b in table if a in reached}
    assert reached == set(kind)


def test_a_step_that_is_not_in_the_table_is_our_own_fault():
    machine = Changes(0)
    with pytest.raises(AssertionError, match="IDLE to INSTALLING"):
        machine._turn(Lead.INSTALLING)
    with pytest.raises(AssertionError, match="UNTOLD to READY"):
        machine._come_to(Stage.READY)


def test_every_step_of_the_tables_is_taken_in_some_run(monkeypatch):
    seen = set()

    def follows(table, before, after):
        seen.add((before, after))
        return states.follows(table, before, after)

    for module in (changes, flush):
        monkeypatch.setattr(module, "follows", follows)
    for seed in range(10):
        _, broken = one(seed, "hybrid", 2, 2, ("storm",))
        assert not broken
    cluster, _ = told_to_one_alone("cbcast", [LARGE] * 20)
    cluster.kill(0)
    for table in TABLES.values():
        assert set(table) - RARE <= seen
