"""One run of a sweep: its verdict is that of the oracle, its figures those of the pipeline."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from bench.waiting import waits
from faulty_machines.unsequenced import AcceptsAnyLaterNumber
from ordercast.errors import ConfigError
from ordercast.experiments import judging
from ordercast.experiments.arrange import arranged
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.judging import verdict_on
from ordercast.experiments.plan import Keep, Trace
from ordercast.experiments.trial import Row, Trial, run_trial
from ordercast.judge.expectations import ALWAYS
from ordercast.judge.measured import measured_here
from ordercast.protocols.basic import Basic
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import CostModel, simulate
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from ordercast.trace.tables import event_table

COSTS = CostModel(receive_us=8, send_us=2, destination_us=4, receive_entry_us=0.2)
TALK = Coordinates(
    protocol="cbcast", members=4, group_size=4, messages=20, reply=0.8, delay="uniform 500 3000"
)


def trial(at: Coordinates, *, trace: Trace = "protocol", keep: Keep = "none") -> Trial:
    return Trial(run="one", at=at, costs=COSTS, trace=trace, needless=True, keep=keep)


def row_of(at: Coordinates, folder: Path, **how: str) -> Row:
    return run_trial(trial(at, **how), folder)  # type: ignore[arg-type]


def at(**given: object) -> Coordinates:
    return msgspec.structs.replace(TALK, **given)


@pytest.mark.parametrize("protocol", ["basic", "cbcast", "sequencer_pb", "nak"])
def test_the_figures_are_those_that_the_pipeline_measures(protocol: str, tmp_path: Path) -> None:
    here = at(protocol=protocol, loss=0.05)
    row = row_of(here, tmp_path)
    config = arranged(here, COSTS, "protocol")
    [measured] = measured_here(event_table(simulate(config).events())).values()
    whole = measured.figures.whole
    assert whole is not None and whole.latency and whole.hold_back and whole.headers
    assert whole.packet_headers is not None
    assert row["sent"] == whole.sends
    assert row["deliveries"] == whole.deliveries
    assert (
        row["packets_received"] == whole.packets_received == sum(dict(row["packet_kinds"]).values())
    )
    assert row["packets"] == row["packets_received"] + row["lost"] - row["duplicates"]
    assert row["header_bytes"] == whole.packet_headers.count * whole.packet_headers.mean
    assert row["header_mean_bytes"] == pytest.approx(whole.headers.mean)
    assert row["delay_mean_ms"] * 1e6 == pytest.approx(whole.latency.mean)
    assert row["delay_p50_ms"] * 1e6 == pytest.approx(whole.latency.at(50), rel=0.02)
    assert row["waited"] == whole.waited
    assert row["hold_back_mean_ms"] * 1e6 == pytest.approx(whole.hold_back.mean)


def test_the_verdict_is_that_of_the_oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifo = at(protocol="fifo", delay="uniform 500 9000")
    wanted = {*ALWAYS, *PROTOCOLS["fifo"].declaration.promises}
    assert row_of(fifo, tmp_path)["verdict"] == "kept"
    monkeypatch.setitem(PROTOCOLS, "fifo", AcceptsAnyLaterNumber)
    outcome = simulate(arranged(fifo, COSTS, "protocol"))
    judged = judge(outcome.events(), only=wanted)
    broken = {name for name, found in judged.items() if found.verdict == "violated"}
    row = row_of(fifo, tmp_path)
    assert broken and row["verdict"] == "violated"
    assert set(row["broken"]) == broken
    assert "delivers" in row["witness"]
    assert verdict_on(outcome, "fifo").broken == row["broken"]


class BasicThatRaises(Basic):
    def on_multicast(self, *arguments: object) -> None:
        raise AssertionError("out of paper")


def test_a_machine_that_raises_makes_a_row_and_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, "basic", BasicThatRaises)
    row = row_of(at(protocol="basic"), tmp_path, keep="failed")
    assert (row["verdict"], row["traced"]) == ("failed", False)
    assert row["witness"] == "AssertionError: out of paper"


def test_a_run_that_is_stopped_is_undecided() -> None:
    outcome = simulate(msgspec.structs.replace(arranged(TALK), limit_ms=5.0))
    found = verdict_on(outcome, "cbcast")
    assert (outcome.ended, found.verdict) == ("time limit", "undecided")
    assert found.witness is not None


@pytest.mark.parametrize(("keep", "kept"), [("none", False), ("failed", False), ("all", True)])
def test_traces_are_kept_as_asked(keep: str, kept: bool, tmp_path: Path) -> None:
    row = row_of(TALK, tmp_path, keep=keep)
    assert row["traced"] is kept
    files = list(tmp_path.rglob("*.parquet"))
    assert len(files) == kept
    if kept:
        events = read_events(files[0])
        assert {event.run for event in events} == {"one"}
        assert sum(event.kind == "deliver" for event in events) == row["deliveries"]


def test_the_trace_of_a_run_that_is_not_kept_is_written_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, "fifo", AcceptsAnyLaterNumber)
    assert row_of(at(protocol="fifo", delay="uniform 500 9000"), tmp_path, keep="failed")["traced"]


def test_without_protocol_rows_a_figure_is_missing_and_not_zero(tmp_path: Path) -> None:
    row = row_of(TALK, tmp_path, trace="application")
    assert row["delay_p99_ms"] > 0
    assert not {"header_bytes", "hold_back_mean_ms", "needless_ms"} & row.keys()


@pytest.mark.parametrize("protocol", ["cbcast", "fifo", "slow"])
def test_needless_waiting_is_found_where_somebody_else_finds_it(
    protocol: str, tmp_path: Path
) -> None:
    seen = waits(protocol, range(6))  # looks into the machines at every step
    seeds = [at(protocol=protocol, seed=seed, fifo=protocol == "slow") for seed in range(6)]
    rows = [row_of(one, tmp_path) for one in seeds]
    assert all(row["waited"] for row in rows)
    assert (sum(row["needless_ms"] for row in rows) > 0) == (seen.needless > 0)
    assert all(0 <= row["needless_share"] <= 1 for row in rows)


def test_a_total_order_waits_beyond_causality(tmp_path: Path) -> None:
    assert row_of(at(protocol="agreed"), tmp_path)["needless_share"] > 0.1


def test_who_is_in_one_group_only_is_looked_at_apart(tmp_path: Path) -> None:
    ring = at(members=12, groups=6, group_size=3, messages=60, fifo=True, every_us=200)
    slow, relative = (
        row_of(msgspec.structs.replace(ring, protocol=name), tmp_path)
        for name in ("slow", "relative")
    )
    assert 0 < slow["single_needless_waits"] <= slow["single_waits"] < slow["waited"]
    assert slow["single_needless_waits"] < slow["needless_waits"]
    assert relative["single_needless_waits"] == 0 < relative["needless_waits"]
    one = row_of(msgspec.structs.replace(TALK, protocol="slow", fifo=True), tmp_path)
    assert one["single_hold_back_mean_ms"] == pytest.approx(one["hold_back_mean_ms"])
    assert one["single_needless_waits"] == one["needless_waits"]


def test_what_nobody_promised_is_judged_as_well(tmp_path: Path) -> None:
    fifo = row_of(at(protocol="fifo", delay="uniform 500 9000"), tmp_path)
    assert (fifo["verdict"], fifo["broken"]) == ("kept", ())
    assert {"causal.group", "total.group"} <= set(fifo["unpromised"])
    assert "fifo.group" not in fifo["unpromised"]


def test_a_saturating_workload_shares_the_messages_out_evenly(tmp_path: Path) -> None:
    config = arranged(at(workload="saturating", messages=22, reply=0.0, window=2))
    planned = config.workload.plan(22, config.groups_of(), Random(1))
    assert sorted(len(one.groups) for one in planned) == [5, 5, 6, 6]
    row = row_of(at(workload="saturating", messages=22, reply=0.0, window=2), tmp_path)
    assert (row["sent"], row["verdict"]) == (22, "kept")


def test_members_crash_half_way(tmp_path: Path) -> None:
    row = row_of(at(protocol="cbcast", crashes=1), tmp_path)
    assert row["verdict"] == "kept", row["witness"]
    assert row["deliveries"] < row["sent"] * 4


def test_subgroups_are_of_equally_many_members(tmp_path: Path) -> None:
    here = at(protocol="two_layered", members=12, group_size=12, subgroups=3, messages=5, reply=0.0)
    row = row_of(here, tmp_path)
    kinds = dict(row["packet_kinds"])
    assert (row["verdict"], row["subgroups"]) == ("kept", 3)
    assert kinds["Global"] == 5 * 2 and kinds["Local"] == 5 * 9
    assert {arranged(here).sites.count(site) for site in arranged(here).sites} == {4}
    with pytest.raises(ConfigError, match="'cbcast' has none"):
        arranged(at(subgroups=2))
    with pytest.raises(ConfigError, match="a site needs a process"):
        arranged(at(protocol="two_layered", subgroups=5))


def test_dear_entries_make_work_dear_and_change_nothing_else(tmp_path: Path) -> None:
    once, twice = row_of(TALK, tmp_path), row_of(at(entry_cost=2.0), tmp_path)
    config = arranged(at(entry_cost=2.0), COSTS)
    assert config.costs == msgspec.structs.replace(COSTS, receive_entry_us=0.4)
    assert twice["cpu_ms"] > once["cpu_ms"]
    assert arranged(at(entry_cost=2.0)).costs is None


def test_in_slow_motion_all_work_takes_longer_by_the_same_factor() -> None:
    config = arranged(at(work_cost=100.0, entry_cost=2.0), COSTS)
    slow = {name: 100 * getattr(COSTS, name) for name in COSTS.__struct_fields__}
    slow["receive_entry_us"] *= 2
    assert config.costs is not None
    assert msgspec.structs.asdict(config.costs) == pytest.approx(slow)


def test_on_a_broadcast_network_packets_are_counted_once(tmp_path: Path) -> None:
    quiet = at(protocol="basic", reply=0.0)
    each = row_of(quiet, tmp_path)
    once = row_of(msgspec.structs.replace(quiet, broadcast=True), tmp_path)
    assert each["payload_bytes"] == 3 * once["payload_bytes"]
    assert once["packets_received"] == each["packets_received"] > once["packets"]


def test_who_worked_most_worked_less_than_all(tmp_path: Path) -> None:
    row = row_of(at(protocol="sequencer_pb"), tmp_path)
    mean = row["cpu_us_per_message"] / 4
    assert mean < row["busiest_us_per_message"] < row["cpu_us_per_message"]


BLAME = (2, 1, "frame 7 of process 1 came twice")


@pytest.mark.parametrize(
    ("violated", "doubtful", "faults", "quiescent", "verdict", "witness"),
    [
        (0, 0, (), True, "kept", None),
        (0, 0, (BLAME,), True, "violated", "process 2 blames 1: frame 7 of process 1 came twice"),
        (0, 1, (BLAME,), False, "violated", "process 2 blames 1: frame 7 of process 1 came twice"),
        (1, 1, (BLAME,), False, "violated", "agreement: of these"),
        (0, 1, (), True, "undecided", "agreement: of these"),
        (0, 1, (), False, "undecided", "agreement: of these"),
        (0, 0, (), False, "undecided", "the run did not come to rest: limit_ms"),
    ],
)
def test_a_run_is_kept_only_if_nothing_speaks_against_it(
    violated: int,
    doubtful: int,
    faults: tuple[tuple[int, int, str], ...],
    quiescent: bool,
    verdict: str,
    witness: str | None,
) -> None:
    outcome: Any = SimpleNamespace(first_faults=faults, quiescent=quiescent, ended="limit_ms")
    findings = SimpleNamespace(evidence=(), reasons=("of these",))
    one: Any = SimpleNamespace(property="agreement", findings=findings)
    assert judging._verdict(outcome, [one] * violated, [one] * doubtful) == (verdict, witness)
