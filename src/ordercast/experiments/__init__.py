"""Sweeps: grids of simulated runs, spread over Spark, every run judged, one row of figures each."""

from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.plan import Plan, read_plan
from ordercast.experiments.schema import COLUMNS, read_runs

__all__ = ["COLUMNS", "Coordinates", "Plan", "read_plan", "read_runs"]
