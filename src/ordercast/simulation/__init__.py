"""Deterministic simulation: the real machines on a made-up network, replayed from one seed."""

from ordercast.simulation.config import GroupConfig, SimulationConfig, overlapping_groups
from ordercast.simulation.costs import CostModel, read_costs
from ordercast.simulation.delays import Constant, Exponential, LogNormal, Uniform
from ordercast.simulation.faults import Crash, FlushTo, Heal, Join, Leave, Partition, Visit
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.outcome import Outcome, Statistics
from ordercast.simulation.performance import Performance
from ordercast.simulation.run import simulate
from ordercast.simulation.workload import (
    Workload,
    all_senders,
    bursts,
    conversations,
    one_sender,
)

__all__ = [
    "Constant",
    "CostModel",
    "Crash",
    "Exponential",
    "FlushTo",
    "GroupConfig",
    "Heal",
    "Join",
    "Leave",
    "LogNormal",
    "NetworkModel",
    "Outcome",
    "Partition",
    "Performance",
    "SimulationConfig",
    "Statistics",
    "Uniform",
    "Visit",
    "Workload",
    "all_senders",
    "bursts",
    "conversations",
    "one_sender",
    "overlapping_groups",
    "read_costs",
    "simulate",
]
