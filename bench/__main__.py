"""`make bench`: speed on this machine, printed and written to out/bench.json with its facts.

The machine may be shared and noisy: read ratios and CPU time per message first. Nothing here is a
test; no figure makes it fail.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import ordercast
from bench import (
    fifty,
    holdback,
    live,
    resilience,
    sequencing_scale,
    simulator,
    two_layered,
    waiting,
)

console = Console()


def _late(module: str) -> Any:
    """A part that needs Spark, or the rig of the live tests: imported when it runs.

    Spark would count as memory elsewhere; the rig needs PYTHONPATH=tests, as `make bench` has it.
    """
    return import_module(f"bench.{module}")


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "simulator": simulator.run,
    "hold-back": holdback.run,
    "waiting": waiting.run,
    "two layers, 2,500 processes": two_layered.run,
    "live, 100 B": lambda: asyncio.run(live.throughput(size=100, count=1_000_000)),
    "live, 1 KiB": lambda: asyncio.run(live.throughput(size=1024, count=200_000)),
    "live, sequencer_bb, 100 B": lambda: asyncio.run(
        live.throughput(size=100, count=500_000, protocol="sequencer_bb")
    ),
    "recording": lambda: asyncio.run(live.recording(size=100, count=600_000)),
    "latency": lambda: asyncio.run(live.latency(per_second=200, count=2000)),
    "resilience": lambda: asyncio.run(resilience.run()),
    "memory": lambda: asyncio.run(live.memory(messages=10_000_000)),
    "recovery": lambda: asyncio.run(_late("recovery").run()),
    "two sites": lambda: asyncio.run(_late("sites").run()),
    "sequencers, groups move": lambda: asyncio.run(_late("sequencing_live").transfer()),
    "sequencers, one is killed": lambda: asyncio.run(
        _late("sequencing_live").kill(coordinator=False)
    ),
    "sequencers, the coordinator is killed": lambda: asyncio.run(
        _late("sequencing_live").kill(coordinator=True)
    ),
    "sequencers, rolling drain": lambda: asyncio.run(_late("sequencing_live").rolling_drain()),
    "who feels it": lambda: asyncio.run(_late("pauses").run()),
    "sequencers, 1000 groups": lambda: asyncio.run(sequencing_scale.run(percent=5)),
    "fifty members": lambda: asyncio.run(fifty.run()),
    "pipeline, 10 processes": lambda: _late("pipeline").full_size(processes=10),
    "pipeline, 100 processes": lambda: _late("pipeline").full_size(processes=100),
    "pipeline, scaling": lambda: _late("pipeline").scaling(),
    "pipeline, 100 M": lambda: _late("pipeline").hundred_million(),
    "oracle": lambda: _late("oracle").run(),
}


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "ordercast": ordercast.__version__,
        "commit": commit.stdout.strip(),
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def main() -> None:
    """Run the parts that were asked for, or all."""
    options = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    options.add_argument("--part", action="append", choices=PARTS, help="may be repeated")
    options.add_argument("--out", type=Path, default=Path("out/bench.json"))
    asked = options.parse_args()
    figures: dict[str, Any] = {"machine": machine()}
    for name in asked.part or PARTS:
        with console.status(name):
            figures[name] = PARTS[name]()
        _show(name, figures[name])
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(figures, indent=2) + "\n")
    console.print(f"written to {asked.out}")


def _show(name: str, figures: dict[str, Any]) -> None:
    table = Table(title=name, title_justify="left", show_header=False)
    for key, value in figures.items():
        shown = f"{value:,.4g}" if isinstance(value, float) else str(value)
        table.add_row(key, shown)
    console.print(table)


if __name__ == "__main__":
    main()
