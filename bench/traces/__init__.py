"""Traces of any size without a simulator: made column by column, with planted faults.

shape.py    what a run is to look like
world.py    a run that keeps every property
stage.py    where and how a fault is acted out
faults.py   the faults, and what each of them breaks
plant.py    which fault goes where
logs.py     the log of one process, and its rows
files.py    Parquet files
witness.py  does a verdict's evidence show a planted fault?
"""

from bench.traces.faults import FAULTS, MASKED, TOGETHER, closure
from bench.traces.files import Generated, generate, small_table
from bench.traces.shape import Shape
from bench.traces.stage import Fault
from bench.traces.witness import Review, review

__all__ = [
    "FAULTS", "MASKED", "TOGETHER", "Fault", "Generated", "Review", "Shape", "closure", "generate",
    "review", "small_table",
]  # fmt: skip
