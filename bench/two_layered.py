"""2,500 processes in fifty subgroups of fifty, in one simulated run: its time and its memory.

Each run is a process of its own, so that its memory is its own. The messages are few: what counts
here is how many take part.
"""

from __future__ import annotations

import resource
from multiprocessing import get_context
from time import process_time

from ordercast.simulation import SimulationConfig, Uniform, simulate

MEMBERS = 2500
RUNS = {"no loss": (50, 0.0), "2 % loss": (20, 0.02)}  # messages, loss


def simulated(messages: int, loss: float, members: int = MEMBERS) -> dict[str, object]:
    """One run, and what it took."""
    config = SimulationConfig(
        protocol="two_layered",
        members=members,
        messages=messages,
        loss=loss,
        delay=Uniform(500, 1500),
        checks=False,
    )
    began = process_time()
    outcome = simulate(config)
    assert outcome.quiescent, "the run never came to rest"
    told = outcome.statistics
    assert told.deliveries == members * told.multicasts, "not all have all"
    return {
        "CPU seconds": round(process_time() - began, 1),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "messages": told.multicasts,
        "deliveries": told.deliveries,
        "packets": told.packets,
        "packets per message": round(told.packets / told.multicasts),
        "simulated ms": round(told.simulated_ms),
    }


def run() -> dict[str, object]:
    """All runs."""
    figures: dict[str, object] = {}
    for name, (messages, loss) in RUNS.items():
        with get_context("spawn").Pool(1) as alone:
            told = alone.apply(simulated, (messages, loss))
        figures |= {f"{name}: {what}": value for what, value in told.items()}
    return figures
