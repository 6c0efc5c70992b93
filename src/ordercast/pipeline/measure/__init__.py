"""What runs cost and how trustworthy their traces are: for people, never for verdicts."""

from ordercast.judge.folds.summing import PERCENTS
from ordercast.pipeline.measure.clocks import clocks
from ordercast.pipeline.measure.deliveries import deliveries
from ordercast.pipeline.measure.facts import facts, groups
from ordercast.pipeline.measure.pace import pace
from ordercast.pipeline.measure.table import LEVELS, measure
from ordercast.pipeline.measure.traffic import traffic

__all__ = [
    "LEVELS",
    "PERCENTS",
    "clocks",
    "deliveries",
    "facts",
    "groups",
    "measure",
    "pace",
    "traffic",
]
