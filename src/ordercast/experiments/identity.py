"""Which run is which: a digest of where it lies in the grid, of its costs, and of the code.

A run whose identity is in the tables is not run again. The code of a run is its protocol's page and
all that any run goes through: a change of one protocol leaves the runs of others as they are.
"""

from __future__ import annotations

import hashlib
from functools import cache
from inspect import getfile
from pathlib import Path

import msgspec

from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.plan import Plan, Settings
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.costs import CostModel

PACKAGE = Path(__file__).parents[1]
SHARED = (
    "core", "machinery", "membership", "reliability", "stack", "wire", "simulation", "trace",
    "pipeline/kernels", "pipeline/expectations.py",
    *(f"experiments/{name}.py" for name in (
        "arrange", "cells", "contexts", "coordinates", "delays", "false_order", "judging",
        "moving", "needless", "readings", "survivors", "trial", "variants",
    )),
)  # fmt: skip


def identities(plan: Plan) -> dict[str, Coordinates]:
    """The runs of a plan by their identities, in the order of the plan."""
    return {_identity(run, plan.costs.of(run.protocol), plan.settings): run for run in plan.runs}


def _identity(at: Coordinates, costs: CostModel | None, settings: Settings) -> str:
    measured = (settings.trace, settings.needless, settings.false_order)
    told = (at, costs, measured, code_of(at.protocol))
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:20]


@cache
def code_of(protocol: str) -> str:
    """Changes when a file changes on which runs of this protocol or their verdicts depend."""
    told = hashlib.sha256()
    for file in sorted({*_files(_page(protocol)), *_shared_files()}):
        told.update(f"{file.relative_to(PACKAGE)}\0".encode() + file.read_bytes())
    return told.hexdigest()[:12]


def _page(protocol: str) -> Path:
    """The file of a protocol, or its folder if it has one of its own."""
    page = Path(getfile(PROTOCOLS[protocol]))
    return page.parent if page.parent.parent.name == "protocols" else page


@cache
def _shared_files() -> tuple[Path, ...]:
    return tuple(file for part in SHARED for file in _files(PACKAGE / part))


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.py"))
