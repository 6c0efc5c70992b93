"""What a sweep adds to the simulation, and whether it keeps the cores busy: 1,000 small runs.

Processor time is that of the command and all processes it starts (Java, Python workers), looked up
every fifth of a second. So the comparison with the simulation holds on a machine that does other
things, too; the share of busy cores means something only on one that does not.

    python -m bench.sweeping --out out/sweeping
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.simulation.costs import Calibration, CostModel

LOOK_SECONDS = 0.2
TICKS = os.sysconf("SC_CLK_TCK")
PLAN = """
title = "a thousand small runs"
costs = "costs.json"
[grid]
protocol = ["basic", "fifo", "cbcast", "sequencer_pb", "agreed"]
members = [4, 6, 8, 10]
messages = 200
seeds = {seeds}
"""
COSTS = CostModel(receive_us=8.0, send_us=2.0, destination_us=4.0, receive_entry_us=0.2)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One sweep; seconds of processor time unless it says otherwise."""

    runs: int
    simulation_s: float
    verdicts_s: float
    figures_s: float
    total_s: float  # of all processes, from the first to the last
    added: float  # to the simulation, as a share of it
    wall_s: float
    busy: float  # of `cores`, by these processes
    cores: int


def measure(out: Path, seeds: int) -> Measured:
    """Sweep into a new folder."""
    out.mkdir(parents=True, exist_ok=True)
    plan = out / "plan.toml"
    plan.write_text(PLAN.format(seeds=seeds))
    Calibration(costs=COSTS).write(out / "costs.json")
    start = "from ordercast.cli.app import main; main()"
    began = time.monotonic()
    command = [sys.executable, "-c", start, "sweep", str(plan), "--out", str(out / "swept")]
    total = _processor_time(subprocess.Popen(command))
    wall = time.monotonic() - began
    work = pq.read_table(out / "swept" / "work.parquet")
    spent = {name: pc.sum(work[name]).as_py() for name in ("simulate_s", "judge_s", "measure_s")}
    cores = os.cpu_count() or 1
    return Measured(
        runs=work.num_rows,
        simulation_s=round(spent["simulate_s"], 1),
        verdicts_s=round(spent["judge_s"], 1),
        figures_s=round(spent["measure_s"], 1),
        total_s=round(total, 1),
        added=round(total / spent["simulate_s"] - 1, 3),
        wall_s=round(wall, 1),
        busy=round(total / wall / cores, 3),
        cores=cores,
    )


def _processor_time(root: subprocess.Popen[bytes]) -> float:
    """Seconds of a process and its descendants, until it ends."""
    spent: dict[int, int] = {}
    while root.poll() is None:
        spent.update(_family(root.pid))
        time.sleep(LOOK_SECONDS)
    if root.returncode:
        raise SystemExit(f"the sweep ended with {root.returncode}")
    return sum(spent.values()) / TICKS


def _family(root: int) -> dict[int, int]:
    """The ticks of a process and of all below it."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(stat.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: ticks[pid] for pid in found if pid in ticks}


def main() -> None:
    """Measure, and print it as JSON."""
    options = argparse.ArgumentParser(prog="python -m bench.sweeping", description=__doc__)
    options.add_argument("--out", type=Path, default=Path("out/sweeping"), help="a new folder")
    options.add_argument("--seeds", type=int, default=50, help="20 runs for each")
    asked = options.parse_args()
    if (asked.out / "swept").exists():
        raise SystemExit(f"{asked.out} has a sweep in it, which would go on; name a new folder")
    print(msgspec.json.format(msgspec.json.encode(measure(asked.out, asked.seeds))).decode())


if __name__ == "__main__":
    main()
