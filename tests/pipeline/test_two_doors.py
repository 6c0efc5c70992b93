"""`check` and `verify`: with Spark or without it, an outcome has the same JSON, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest

from ordercast.judge.check import check_paths
from ordercast.pipeline.verdict import judge_paths
from ordercast.simulation.config import SimulationConfig, overlapping_groups
from ordercast.simulation.run import simulate
from ordercast.trace.mapping import read_mapping
from ordercast.trace.schema import Event
from ordercast.trace.write import write_csv, write_jsonl, write_parquet
from random_traces import random_traces

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

FOREIGN = Path(__file__).parents[2] / "examples" / "foreign"
MAPPED = [
    (mapping, folder)
    for mapping in sorted(FOREIGN.glob("*/mapping.toml"))
    for folder in [p for p in sorted(mapping.parent.iterdir()) if p.is_dir()] or [mapping.parent]
]


def random_runs(count: int) -> list[Event]:
    return [event for one in random_traces(Random(11), count) for event in one]


def watched_runs() -> list[Event]:
    """Two runs at protocol level, in overlapping groups, with loss."""
    return [
        msgspec.structs.replace(event, run=protocol)
        for protocol in ("cbcast", "sequencer_pb")
        for event in simulate(
            SimulationConfig(
                members=5, messages=40, loss=0.1, seed=2, protocol=protocol, trace="protocol",
                groups=overlapping_groups(5, 2, 3) if protocol == "cbcast" else None,
            )
        ).events()
    ]  # fmt: skip


def both(*paths: Path, **how: object) -> tuple[bytes, bytes]:
    checked = check_paths(paths, **how)  # type: ignore[arg-type]
    verified = judge_paths(paths, master="local[2]", **how)  # type: ignore[arg-type]
    return tuple(msgspec.json.encode(one.as_json()) for one in (checked, verified))  # type: ignore[return-value]


@pytest.mark.parametrize("write", [write_jsonl, write_csv, write_parquet])
def test_random_runs_good_and_broken(tmp_path: Path, write: Callable[..., None]) -> None:
    name = {write_jsonl: "t.jsonl", write_csv: "t.csv", write_parquet: "t"}[write]
    write(random_runs(60), tmp_path / name)
    checked, verified = both(tmp_path)
    assert b"violated" in checked and b"inconclusive" in checked
    assert checked == verified


def test_runs_that_were_recorded_with_packets(tmp_path: Path) -> None:
    write_parquet(watched_runs(), tmp_path)
    checked, verified = both(tmp_path, expect=["causal", "agreement"])
    assert b"packets_received" in checked
    assert checked == verified


def test_what_spark_reads_in_its_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger traces take other ways through Spark: these are small, and pretend to be large."""
    write_parquet(random_runs(20), tmp_path / "laid_out")
    write_jsonl(random_runs(20), tmp_path / "mixed.jsonl")
    monkeypatch.setattr("ordercast.pipeline.verdict.SMALL_BYTES", 0)
    monkeypatch.setattr("ordercast.pipeline.read.SMALL_BYTES", 0)
    monkeypatch.setattr("ordercast.pipeline.verdict.DIRECT_BYTES", 0)
    for path in (tmp_path / "laid_out", tmp_path / "mixed.jsonl"):
        checked, verified = both(path, quiescent=True)
        assert checked == verified


@pytest.mark.parametrize(("mapping", "logs"), MAPPED, ids=lambda path: path.name)
def test_foreign_logs(mapping: Path, logs: Path) -> None:
    checked, verified = both(logs, mapping=read_mapping(mapping))
    assert checked == verified
