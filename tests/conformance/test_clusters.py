"""Clusters with churn: every protocol, a few seeds. The sweep runs thousands.

The judge is judged, too: it must see what is wrong.
"""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from ordercast.core.whereabouts import Whereabouts
from ordercast.membership.news import Blocked, Installed, Out
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId
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
    is_last_voter,
    misplaced,
    run,
)
from sweep.every_step import CHANGES, config
from sweep.trial import failures
from sweep.variety import features

SEEDS = range(20_000, 20_002)  # the sweep begins at 0
VARIED = range(20_000, 20_040)
OPEN = [name for name, page in PROTOCOLS.items() if not page.declaration.closed]
PLACED = [name for name, page in PROTOCOLS.items() if page.together is not None]


FOUND_BY_THE_SWEEP = [
    ("fifo", "cluster", 32),  # somebody looks at what waits in a group before its first view
    ("sequencing_causal", "placing", 38),  # a group comes back to who moved it away, to leave
    ("sequencing", "placing", 262),  # one who reported is lost before the last report comes
    ("sequencing", "visiting", 71),  # a guest whose frame was answered before the era ended
    ("sequencing", "visiting", 76),  # a newcomer whose connection broke before its view began
    ("sequencing", "pairs", 112),  # a guest forgets what only the sequencer has
    ("javagroups", "cluster_merge", 18),  # two sides of which no node has met one of the other
    ("agreed", "cluster_merge", 60),  # one side finishes a change that the other gave up
    ("sequencing_global", "cluster_merge", 66),  # both sides begin an era of the same number
]


@pytest.mark.parametrize(("protocol", "arena", "seed"), FOUND_BY_THE_SWEEP)
def test_schedules_that_once_went_wrong(protocol: str, arena: str, seed: int) -> None:
    assert failures(protocol, arena, seed) == []


@pytest.mark.parametrize("protocol", PLACED)
def test_groups_that_move_keep_their_promises_whoever_comes_and_goes(protocol: str) -> None:
    found = [failure for seed in SEEDS for failure in failures(protocol, "placing", seed)]
    assert not found, str(found[0])


@pytest.mark.parametrize("arena", ["cluster", "cluster_merge"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cluster_keeps_its_promises_whoever_comes_and_goes(protocol: str, arena: str) -> None:
    found = [failure for seed in SEEDS for failure in failures(protocol, arena, seed)]
    assert not found, str(found[0])


@pytest.mark.parametrize("protocol", OPEN)
def test_open_groups_keep_their_promises_while_guests_come_and_go(protocol: str) -> None:
    found = [failure for seed in SEEDS for failure in failures(protocol, "visiting", seed)]
    assert not found, str(found[0])


def test_subgroups_keep_their_promises_when_gateways_crash_and_sites_are_cut_off() -> None:
    found = [f for seed in SEEDS for f in failures("two_layered", "sites", seed)]
    assert not found, str(found[0])


def test_the_members_at_a_site_are_a_subgroup_for_all_of_them() -> None:
    where = tuple(Whereabouts(site, site == "y") for site in ("x", "y", "x", "y", "x"))
    done = run(ClusterConfig(protocol=TwoLayered, hosts=5, sites=where, messages=5))
    machines = [done.simulation.machines[p].groups.machines[1] for p in range(5)]
    for machine in machines:
        assert {frozenset(inside) for inside in machine.layout.subgroups} == {
            frozenset((0, 2, 4)),
            frozenset((1, 3)),
        }
    assert len({machine.layout.subgroups for machine in machines}) == 1


def test_a_sweep_runs_each_thorough_protocol_ten_thousand_times_and_others_a_thousand() -> None:
    for name, page in PROTOCOLS.items():
        assert CLUSTERS["cluster"].seeds(page) == (10_000 if name in THOROUGH else 1_000)
        every_step = name in THOROUGH or page.together is not None
        assert (CLUSTERS["cluster_steps"].seeds(page) > 3_000) == every_step
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


def last_view() -> NodeView:
    return max((view for _, _, view in quiet_run().installed), key=lambda view: view.id)


def view(number: int, *pids: int, parent: ViewId | None = None) -> Installed:
    nodes = tuple(NodeEntry(p, f"p{p}", 1) for p in pids)
    before = last_view().id if parent is None else parent
    return Installed(NodeView(ViewId(number=number), nodes, pids, number, parent=before))


def test_the_judge_finds_nothing_in_a_run_that_went_well() -> None:
    assert cluster_complaints(quiet_run()) == []
    assert not list(misplaced(quiet_run()))
    assert done_ms(quiet_run()) - quiet_run().last_fault_ms < UNBLOCKED_MS
    assert told(1, Blocked(4, (3,))) == []


def test_the_judge_lets_the_last_voter_stay_with_those_who_do_not_vote() -> None:
    nodes = (NodeEntry(0, "a", 1), NodeEntry(1, "b", 1, voter=False))
    mixed = NodeView(ViewId(number=2), nodes, (0,), 1)
    assert is_last_voter(mixed, 0) and not is_last_voter(mixed, 1)
    assert not is_last_voter(view(2, 0, 1).view, 0) and not is_last_voter(view(2, 0).view, 0)


def test_the_judge_sees_a_number_that_falls() -> None:
    (found,) = told(1, view(4, 0, 1, 2, 3))[:1]
    assert found[0] == "numbers rise"


def test_the_judge_sees_two_views_of_one_id() -> None:
    names = [name for name, _ in told(7, view(last_view().number, 1, 2))]
    assert "one view per id" in names


def test_the_judge_sees_a_view_that_too_few_have_accepted() -> None:
    (found,) = told(2, view(900, 2))
    voters = last_view().voters
    says = f"view 900, (2,), is not decided by the voters before, {voters}"
    assert found == ("one primary side", says)


def test_the_judge_sees_two_views_after_one() -> None:
    before = last_view().parent
    names = [name for name, _ in told(2, view(900, 0, 1, 2, parent=before))]
    assert names == ["one primary side"] * 2


def test_the_judge_sees_one_that_is_driven_out() -> None:
    names = [name for name, _ in told(2, Out(9, 0))]
    assert names == ["nobody is driven out"]


def test_the_judge_sees_that_it_took_too_long() -> None:
    late = quiet_run().last_fault_ms + UNBLOCKED_MS + 1
    next_view = view(last_view().number + 1, 0, 1, 2)
    assert "nothing is blocked" in [name for name, _ in told(2, next_view, late)]


def test_half_of_a_view_is_enough_only_with_its_first_node() -> None:
    assert enough((5, 1), (5, 1, 2, 3)) and not enough((1, 2), (5, 1, 2, 3))
    assert enough((1, 2), (5, 1, 2)) and not enough((5,), (5, 1, 2))
