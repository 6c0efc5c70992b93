"""Runs in which members crash: a whole cluster, whose groups go on in a next view."""

from __future__ import annotations

from ordercast.errors import ConfigError
from ordercast.experiments.coordinates import Coordinates


def check_crashes(run: Coordinates) -> None:
    """`ConfigError` for a run that cannot be one of a cluster."""
    if run.workload != "paced" or run.window or run.sequencers:
        raise ConfigError(
            f"crashes = {run.crashes}: then workload = 'paced', window = 0 and sequencers = 0"
        )
