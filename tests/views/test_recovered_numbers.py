"""One number of a group's view names one view, also when a cluster was recovered, and others that
had gone on meanwhile had given the next numbers already."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.changing import FramesEnd
from ordercast.core.events import View
from ordercast.core.numbers import (
    FORKS,
    GENERATION_VIEWS,
    MAX_COUNT,
    MAX_ERA,
    MAX_GENERATION,
    ViewNumbers,
)
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId
from ordercast.membership.options import ClusterOptions
from ordercast.membership.plausible import check_view
from ordercast.process.process import VIEW_STRIDE
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.clustered import (
    Boot,
    ClusterConfig,
    PartitionHosts,
    simulate_cluster,
)
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.faults import Crash, Heal
from ordercast.simulation.network import NetworkModel
from ordercast.views import plausible
from ordercast.views.changes import Changes
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Change, Next, Report, Row, Rows, WantIn
from ordercast.views.target import Target
from sweep.trial import judged_trace

pages = PROTOCOLS.__getitem__
GROUP = GroupEntry(1, "g", "causal", "cbcast", 7)
OTHER = GroupEntry(2, "h", "causal", "cbcast", 7)


def views_of(outcome):
    """(process, group, number, members) of every view that an application saw."""
    records = outcome.log.records
    rows = ((p, row) for p, _, *rows in records for row in rows if isinstance(row, View))
    return [(p, row.group, row.number, row.members) for p, row in rows]


def recovering(protocol, hosts, faults, groups=None, seed=0):
    everybody = tuple(range(hosts))
    return simulate_cluster(
        ClusterConfig(
            protocol=PROTOCOLS[protocol],
            hosts=hosts,
            groups=groups or (GroupConfig(members=everybody),),
            messages=20,
            network=NetworkModel(fifo=True),
            cluster=ClusterOptions(
                heartbeat_ms=20,
                suspect_ms=160,
                electorate=tuple(f"p{host}" for host in everybody),
                refound_ms=400,
            ),
            faults=faults,
            seed=seed,
            until_ms=4000,
        )
    )


# -- whole clusters -------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["sequencing", "cbcast", "sequencer_pb"])
def test_a_cluster_that_is_recovered_gives_no_number_that_others_gave_meanwhile(protocol):
    """p1 and p2 go on without p0 and are started again; the electorate goes on from what p0 has."""
    faults = (
        PartitionHosts(((0,),), at_ms=200),
        Crash(1, at_ms=600),
        Crash(2, at_ms=601),
        Boot(1, at_ms=640),
        Boot(2, at_ms=645),
        Heal(at_ms=700),
    )
    outcome = recovering(protocol, 3, faults)
    assert set(outcome.standing.values()) == {"in"}
    assert not judged_trace(outcome.events(), ("views", "vsync"), settles=True)
    seen = views_of(outcome)
    meanwhile = [number for p, _, number, members in seen if 0 not in members]
    after = [number for p, _, number, _ in seen if number >= GENERATION_VIEWS]
    assert meanwhile and after and max(meanwhile) < GENERATION_VIEWS


@pytest.mark.parametrize("protocol", ["sequencing", "cbcast"])
def test_no_number_names_two_views_however_often_a_cluster_is_recovered(protocol):
    """At random one host, or two, are cut off, the others go on and are started again; twice. The
    invariants are looked at after every step."""
    recovered = 0
    for seed in range(12):
        rng = Random(f"recovered {protocol} {seed}")
        faults, groups = [], [GroupConfig(members=tuple(range(5)))]
        groups += [GroupConfig(members=tuple(rng.sample(range(5), 3))) for _ in range(2)]
        for begin in (200, 1500):
            alone = rng.sample(range(5), rng.choice((1, 2)))
            faults.append(PartitionHosts((tuple(alone),), at_ms=begin))
            for host in (h for h in range(5) if h not in alone):
                at_ms = begin + 400 + rng.uniform(0, 5)
                faults += [Crash(host, at_ms=at_ms), Boot(host, at_ms=at_ms + rng.uniform(20, 60))]
            faults.append(Heal(at_ms=begin + 500))
        outcome = recovering(protocol, 5, tuple(faults), tuple(groups), seed)
        assert not judged_trace(outcome.events(), ("views",), settles=False), seed
        recovered += any(number >= GENERATION_VIEWS for _, _, number, _ in views_of(outcome))
    assert recovered > 6


# -- the coordinator ------------------------------------------------------------------------------


def target_of(numbers, *rows):
    directory, target = Directory(), Target(0, 1, 1 << 30)
    for row in rows:
        directory.put(row)
    target.begin(directory, (NodeEntry(0, "z", 1), NodeEntry(1, "a", 1)), {}, pages)
    target.numbers = numbers
    return directory, target


def test_all_groups_leap_also_those_whose_members_are_the_same():
    numbers = ViewNumbers.of(1, 1, 1)
    same, empty = Row(GROUP, 3, 5, (0, 1), (), 0), Row(OTHER, 4, 4, (), (), -1)
    directory, target = target_of(numbers, same, empty)
    rows = target.next_rows(directory, (), pages)
    assert [row.number for row in rows.values()] == [numbers.low, numbers.low]
    for row in rows.values():
        directory.put(row)
    assert not target.next_rows(directory, (), pages) and not target.is_due(directory)


@pytest.mark.parametrize("part", ["member", "guest"])
def test_a_group_that_is_founded_after_a_recovery_begins_above_all_of_that_name_before(part):
    numbers = ViewNumbers.of(2, 1, 1)
    directory, target = target_of(numbers)
    target.want_in(directory, 1, WantIn(GROUP, part), pages)
    [row] = target.next_rows(directory, (), pages).values()
    assert row.number >= numbers.low and row.era == 1


def test_what_was_planned_before_a_recovery_is_void_though_all_have_prepared_it():
    """The others were not ready for it, went on without these, and gave its numbers to other views;
    then they were started again."""
    machine = Changes(0)
    machine.nodes = {0: NodeEntry(0, "z", 1), 1: NodeEntry(1, "a", 1)}
    planned = Change(1, (4, 1), (Next(Row(GROUP, 4, 4, (0, 1), (), 0), FramesEnd()),), (0, 1, 2))
    said = Report(5, 1, 0, None, planned, (), ())
    machine.now.reports = {0: said, 1: said}
    assert machine._prepared_by_all() is planned
    machine.target.numbers = ViewNumbers.of(1, 0, 1)
    assert machine._prepared_by_all() is None


# -- numbers --------------------------------------------------------------------------------------

GENERATIONS = st.integers(0, MAX_GENERATION - 1)


@given(GENERATIONS, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_generation_begins_above_all_that_the_one_before_can_have_given(generation, fork, other):
    before = ViewNumbers.of(generation, fork, 1)
    after = ViewNumbers.of(generation + 1, other, 1)
    assert before.low >= 0 and before.highest(MAX_ERA) < after.low
    assert after.highest(MAX_ERA) <= MAX_COUNT


@given(GENERATIONS, st.integers(0, 2**32 - 1), st.integers(1, FORKS - 1))
def test_two_recoveries_at_once_begin_apart(generation, fork, further):
    one = ViewNumbers.of(generation + 1, fork, 1)
    other = ViewNumbers.of(generation + 1, fork + further, 1)
    assert abs(one.low - other.low) >= 10**8


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20), st.sampled_from([1, VIEW_STRIDE]))
def test_the_era_limits_the_number_of_a_view(leaders, stride):
    numbers = ViewNumbers.of(0, 0, stride)
    number = 0
    for era, leader in enumerate(leaders, start=1):
        before, number = number, numbers.after(number, leader)
        assert before < number <= numbers.highest(era) < numbers.after(numbers.below(era), 0)
    assert numbers.highest(MAX_ERA) <= MAX_COUNT


# -- what a peer may say --------------------------------------------------------------------------

RECOVERED = ViewNumbers.of(1, 0, 1)


@pytest.mark.parametrize(
    ("number", "era", "fits"),
    [
        (RECOVERED.low, 6, True),
        (RECOVERED.low + 6, 6, True),
        (RECOVERED.low + 7, 6, False),
        (2 * RECOVERED.low, 6, False),
        (4, 6, True),  # installed by somebody before the recovery
        (2, 6, False),
        (RECOVERED.low, 7, False),
        (RECOVERED.low, MAX_ERA, False),
    ],
)
def test_a_change_leaps_to_where_the_generation_begins_and_no_further(number, era, fits):
    directory = Directory()
    directory.put(Row(GROUP, 3, 5, (0, 1), (), 0))
    coming = Next(Row(GROUP, number, era, (0, 1), (), 0), FramesEnd())
    change = Change(9, (4, 1), (coming,), (0, 1))
    if fits:
        plausible.change(change, directory, pages, RECOVERED)
    else:
        with pytest.raises(PeerError, match="is not between"):
            plausible.change(change, directory, pages, RECOVERED)


@pytest.mark.parametrize("era", [9, MAX_ERA, 2**40])
def test_a_group_that_is_new_begins_with_the_next_era_after_those_that_were_forgotten(era):
    directory = Directory()
    directory.floor = 7
    change = Change(9, (4, 1), (Next(Row(GROUP, 1, era, (0,), (), 0), FramesEnd()),), (0, 1))
    with pytest.raises(PeerError, match="era"):
        plausible.change(change, directory, pages, ViewNumbers())


@pytest.mark.parametrize("floor", [8, MAX_ERA, 2**40])
def test_a_directory_cannot_raise_the_floor_beyond_the_eras_that_there_were(floor):
    directory = Directory()
    directory.put(Row(GROUP, 3, 5, (0, 1), (), 0))
    newest = Change(4, (4, 1), (Next(Row(GROUP, 4, 6, (0,), (), 0), FramesEnd()),), (0, 1))
    rows = Rows(4, 4, newest, (newest.groups[0].row,), 7)
    plausible.rows(rows, 2, directory, pages, ViewNumbers())
    rows = Rows(4, 4, newest, (newest.groups[0].row,), floor)
    with pytest.raises(PeerError, match="floor"):
        plausible.rows(rows, 2, directory, pages, ViewNumbers())


def test_no_view_of_nodes_is_of_a_generation_that_leaves_no_numbers():
    nodes = (NodeEntry(0, "z", 1),)
    check_view(NodeView(ViewId(MAX_GENERATION, 0, 9), nodes, (0,), 9), votes=True)
    with pytest.raises(PeerError, match="generation"):
        check_view(NodeView(ViewId(MAX_GENERATION + 1, 0, 9), nodes, (0,), 9), votes=True)
