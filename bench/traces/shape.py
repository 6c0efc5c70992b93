"""What a generated run is to look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FEWEST_PROCESSES = 8  # one crashes, one goes and comes back, four take part in a fault

Layout = Literal["logs", "shuffled", "heap"]


@dataclass(frozen=True)
class Shape:
    """The parameters of a run; equal shapes give equal files.

    `layout` says how the rows lie:
        logs       a folder run=NAME with one file per process, rows in the order of the log
        shuffled   the same files, the rows of each in any order
        heap       one file for everything, in any order: a run that is not laid out
    """

    events: int  # about so many rows
    processes: int
    groups: int = 1  # overlapping: g0 has views, the others joins and leaves or a declaration
    lag: int = 25  # by how many messages the slowest process is late
    faults: tuple[str, ...] = ()  # names of `faults.FAULTS`
    layout: Layout = "logs"
    seed: int = 1
    run: str = "generated"

    def __post_init__(self) -> None:
        if self.processes < FEWEST_PROCESSES:
            raise ValueError(f"{self.processes} processes; at least {FEWEST_PROCESSES} are needed")
