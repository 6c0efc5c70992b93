"""python -m experiments: sweep, draw, write docs/RESULTS.md. A sweep that was stopped goes on."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from experiments.catalogue import EXPERIMENTS
from experiments.results import FOLDER, PAGE, RESULTS, draw_experiment, page
from ordercast.cli.calibrate import calibrated
from ordercast.cli.spark import check_master
from ordercast.cli.sweep import session_on, swept
from ordercast.experiments import read_plan
from ordercast.experiments.sweep import Session
from ordercast.protocols.registry import PROTOCOLS

LARGE = {"vector": 625, "two_layered": 625}  # members: experiments use these in large groups


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--quick", action="store_true", help="few small runs; changes no result")
    parser.add_argument("--out", type=Path, default=Path("out/experiments"))
    parser.add_argument("--master", help="Spark master; else this machine")
    parser.add_argument("--calibrate", action="store_true", help="measure the costs here, first")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    return asked


def main() -> int:
    """Exit code 1 if a run was not kept."""
    asked = arguments()
    check_master(asked.master)
    if asked.calibrate:
        calibrate_all()
    with session_on(asked.master) as session:
        kept = [conducted(name, asked, session) for name in asked.names or EXPERIMENTS]
    if not asked.quick:
        PAGE.write_text(page(), encoding="utf-8")
        print(f"written to {PAGE}")
    return 0 if all(kept) else 1


def conducted(name: str, asked: argparse.Namespace, session: Session) -> bool:
    """Sweep and draw; whether every run was kept. A full sweep goes into the results."""
    plan = read_plan(FOLDER / f"{name}.toml", quick=asked.quick)
    out = asked.out / ("quick" if asked.quick else "full") / name
    summary = swept(session, plan, out)
    print(f"{name}: {summary}", flush=True)
    for witness in summary.first_bad:
        print(f"  {witness}")
    if not asked.quick:
        RESULTS.mkdir(exist_ok=True)
        shutil.copy(out / "runs.parquet", RESULTS / f"{name}.parquet")
    for drawn in draw_experiment(name, out / "runs.parquet", out if asked.quick else RESULTS):
        print(f"written to {drawn}", flush=True)
    return not summary.first_bad


def calibrate_all() -> None:
    """The costs of every protocol on this computer."""
    for name in PROTOCOLS:
        calibrated([name], large=LARGE.get(name, 0)).write(FOLDER / "costs" / f"{name}.json")


if __name__ == "__main__":
    sys.exit(main())
