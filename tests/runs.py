"""Small runs for tests of the kernels, from the notation of `notation.trace`."""

from __future__ import annotations

import pytest

from notation import trace
from ordercast.judge.kernels import compiled
from ordercast.judge.kernels.causality import Causality, scan, whole_logs
from ordercast.judge.kernels.load import build_run
from ordercast.judge.kernels.membership import Membership, joiners
from ordercast.judge.kernels.missing_deliveries import MissingDeliveries
from ordercast.judge.kernels.run import Ints, Run
from ordercast.trace.tables import event_table


def run_of(text: str) -> Run:
    """The run that the text describes."""
    return build_run(event_table(trace(text)))


def causality_of(run: Run) -> Causality:
    """Happened-before, with the components that `Membership` needs."""
    return scan(run, whole_logs(run), joiners(run)).causality


def members_of(run: Run) -> Membership:
    return Membership(run, causality_of(run))


def missing_of(run: Run) -> MissingDeliveries:
    return MissingDeliveries(run, members_of(run))


def names(run: Run, messages: Ints) -> list[str]:
    """The ids of an array of messages."""
    return [run.name(m) for m in messages.tolist()]


def use_kernels(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on kernels run as plain Python, or compiled however small the run is."""
    if form == "compiled":
        monkeypatch.setattr(compiled, "COMPILE_FROM", 0)
    else:
        monkeypatch.setattr(compiled.Kernel, "__call__", lambda kernel, *args: kernel.plain(*args))
