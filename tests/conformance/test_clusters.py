"""Clusters with churn: every protocol, a few seeds. The sweep runs thousands.

The judge is judged, too: it must see what is wrong.
"""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from ordercast.core.whereabouts import Whereabouts
from ordercast.membership.nodes import NodeEntry, NodeView
from ordercast.membership.standing import Blocked, Installed, Out
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.simulation.clustered import ClusterConfig
from sweep.churn import churn
from sweep.cluster_arenas import CLUSTERS, THOROUGH
from sweep.cluster_oracle import (
    UNBLOCKED_MS,
    ClusterRun,
    cluster_complaints,
    done_ms,
    enough,
    misplaced,
    run,
)
from sweep.every_step import CHANGES, config
from sweep.trial import failures
from sweep.variety import features

SEEDS = range(20_000, 20_004)  # the sweep begins at 0
VARIED = range(20_000, 20_060)


FOUND_BY_THE_SWEEP = [
    ("sequencer_bb", 322),  # two views begun, each by one; one of them died
    ("fast", 422),  # excluded by a view that only some have begun, without its coordinator
    ("fifo", 554),  # a newcomer hears of a view before the word to begin it
    ("block_total", 237),  # a view announced after one that was only ready elsewhere
    ("cbcast", 6633),  # a late word that a side was too small
    ("cbcast", 4494),  # only who announced the last view is missing
    ("agreed", 4529),  # a newcomer must look for who was lost before it came
    ("sequencer_pb", 5640),  # who left had delivered what the others lack
    ("javagroups", 862),  # two attempts after one view, each with numbers for the groups
    ("sequencing_hybrid", 531),  # who left has not seen its last view when others number the group
]


FOUND_WHILE_GROUPS_MOVE = [
    ("sequencing", 901),  # who numbered a group is let in by the view that it knows
    ("sequencing", 917),  # it numbered a group, wanted to be in, and changed its mind
    ("sequencing", 1084),  # what comes after a long wait for a word
    ("sequencing_causal", 30),  # it numbers a group whose last view its driver has not seen
    ("sequencing_global", 875),  # who left numbers the group before its last word has come
    ("sequencing_global", 118),  # all leave a group while its sequencer is lost
    ("sequencing_causal", 416),  # ... and one of them has not had its last view when it is lost
    ("sequencing_global", 1731),  # who numbers a group is in as soon as it asks, and leaves again
    ("sequencing", 3690),  # all have a view before its coordinator, who does not hear of it again
    ("sequencing_hybrid", 342),  # who leaves a group last coordinates, and comes back
    ("sequencing_global", 1976),  # who left numbers the group, and waits for those who came since
    ("sequencing_causal", 4519),  # the next sequencer alone had delivered what it spoke of before
    ("sequencing_global", 4576),  # late word lets a node into a group that ended with the last view
    ("sequencing_causal", 4776),  # who left waits for the word of one that has left, too
    ("sequencing", 739),  # one that is let in while its wish waits for the end of a hand-over
    ("sequencing", 7900),  # a word that is asked for once in a while comes after a long silence
    ("sequencing_global", 747),  # it wanted to be in, and changed its mind before it was
]


@pytest.mark.parametrize(("protocol", "seed"), FOUND_BY_THE_SWEEP)
def test_schedules_that_once_went_wrong(protocol: str, seed: int) -> None:
    assert failures(protocol, "cluster", seed) == []


@pytest.mark.parametrize(("protocol", "seed"), FOUND_WHILE_GROUPS_MOVE)
def test_moves_that_once_went_wrong(protocol: str, seed: int) -> None:
    assert failures(protocol, "placing", seed) == []


@pytest.mark.parametrize("arena", ["cluster", "cluster_merge"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cluster_keeps_its_promises_whoever_comes_and_goes(protocol: str, arena: str) -> None:
    found = [failure for seed in SEEDS for failure in failures(protocol, arena, seed)]
    assert not found, str(found[0])


def test_subgroups_keep_their_promises_when_gateways_crash_and_sites_are_cut_off() -> None:
    found = [f for seed in SEEDS for f in failures("two_layered", "sites", seed)]
    assert not found, str(found[0])


def test_the_members_at_a_site_are_a_subgroup_for_all_of_them() -> None:
    where = tuple(Whereabouts(site, site == "y") for site in ("x", "y", "x", "y", "x"))
    done = run(ClusterConfig(protocol=TwoLayered, hosts=5, sites=where, messages=5))
    machines = [done.simulation.machines[p].protocols[1] for p in range(5)]
    for machine in machines:
        assert {frozenset(inside) for inside in machine.layout.subgroups} == {
            frozenset((0, 2, 4)),
            frozenset((1, 3)),
        }
    assert len({machine.layout.subgroups for machine in machines}) == 1


def test_a_sweep_runs_each_thorough_protocol_ten_thousand_times_and_others_a_thousand() -> None:
    for name, page in PROTOCOLS.items():
        assert CLUSTERS["cluster"].seeds(page) == (10_000 if name in THOROUGH else 1_000)
        assert (CLUSTERS["cluster_steps"].seeds(page) > 3_000) == (name in THOROUGH)
        assert CLUSTERS["sites"].seeds(page) == (10_000 if page.has_subgroups else 0)


def test_runs_with_churn_are_worth_judging() -> None:
    seen = [set(features(run(churn(PROTOCOLS["fifo"], seed)))) for seed in VARIED]
    for feature, share in (
        ("a coordinator crashed", 0.3),
        ("an attempt to end a view was cut short", 0.3),
        ("packets were cut off", 0.5),
        ("some came back as the next incarnation", 0.3),
        ("a join raced with an exclusion", 0.15),
    ):
        assert sum(feature in run_features for run_features in seen) > share * len(seen), feature
    blocked = sum("not everything is in place in the end" in names for names in seen)
    assert blocked < 0.3 * len(seen)


# -- the judge ------------------------------------------------------------------------------------


@cache
def quiet_run() -> ClusterRun:
    """One member crashes, and all goes well."""
    return run(config(PROTOCOLS["fifo"], CHANGES["a member crashes"]))


def told(p: int, news: msgspec.Struct, ms: float = 1000.0) -> list[tuple[str, str]]:
    """What the judge says if a process had also been told this."""
    done = quiet_run()
    done.simulation.story.append((ms, p, news))
    try:
        return cluster_complaints(done)
    finally:
        done.simulation.story.pop()


def view(number: int, *pids: int) -> Installed:
    return Installed(NodeView(number, tuple(NodeEntry(p, f"p{p}", 1) for p in pids)))


def test_the_judge_finds_nothing_in_a_run_that_went_well() -> None:
    assert cluster_complaints(quiet_run()) == []
    assert not list(misplaced(quiet_run()))
    assert done_ms(quiet_run()) - quiet_run().last_fault_ms < UNBLOCKED_MS
    assert told(1, Blocked(4, (3,))) == []


def test_the_judge_sees_a_number_that_falls() -> None:
    (found,) = told(1, view(4, 0, 1, 2, 3))[:1]
    assert found[0] == "numbers rise"


def test_the_judge_sees_two_views_of_one_number() -> None:
    last = max(number for _, _, number, _ in quiet_run().installed)
    names = [name for name, _ in told(7, view(last, 1, 2))]
    assert "one view per number" in names


def test_the_judge_sees_a_second_side_that_goes_on() -> None:
    names = [name for name, _ in told(2, view(900, 2))]
    assert names == ["one primary side"]


def test_the_judge_sees_one_that_is_driven_out() -> None:
    names = [name for name, _ in told(2, Out(9, 0))]
    assert names == ["nobody is driven out"]


def test_the_judge_sees_that_it_took_too_long() -> None:
    last = max(number for _, _, number, _ in quiet_run().installed)
    late = quiet_run().last_fault_ms + UNBLOCKED_MS + 1
    assert [name for name, _ in told(2, view(last + 1, 0, 1, 2), late)] == ["nothing is blocked"]


def test_half_of_a_view_is_enough_only_with_its_first_node() -> None:
    assert enough((5, 1), (5, 1, 2, 3)) and not enough((1, 2), (5, 1, 2, 3))
    assert enough((1, 2), (5, 1, 2)) and not enough((5,), (5, 1, 2))
