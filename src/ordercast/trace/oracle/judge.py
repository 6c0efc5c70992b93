"""All properties of a run, by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ordercast.trace.oracle import integrity, orders, views
from ordercast.trace.oracle.logs import Run
from ordercast.trace.schema import HYBRIDS, PROPERTIES, Event, Judgement

GENERAL: dict[str, Callable[[Run], Judgement]] = {
    "wellformed": integrity.wellformed,
    "no_duplication": integrity.no_duplication,
    "no_creation": integrity.no_creation,
    "membership": integrity.membership,
    "validity": integrity.validity,
    "agreement": lambda run: integrity.agreement(run, uniform=False),
    "agreement.uniform": lambda run: integrity.agreement(run, uniform=True),
    "views": views.views,
    "vsync": views.vsync,
    "sending_view": views.sent_and_delivered_in_one_view,
}
ORDERS: dict[str, Callable[..., Judgement]] = {
    "fifo.group": orders.fifo_group,
    "fifo.global": orders.fifo_global,
    "causal.group": orders.causal_group,
    "causal.global": orders.causal_global,
    "total.group": orders.total_group,
    "total.global": orders.total_global,
    "total.pairwise": orders.total_pairwise,
    "total.gapless": orders.total_gapless,
}
NEEDS = {  # a property is n/a in a run in which one of these kinds does not occur
    "no_duplication": {"deliver"}, "no_creation": {"deliver"}, "membership": {"deliver"},
    "validity": {"send"}, "agreement": {"deliver"},
    "fifo": {"send", "deliver"}, "causal": {"send", "deliver"}, "total": {"deliver"},
    "views": {"view"}, "vsync": {"view"}, "sending_view": {"view"},
}  # fmt: skip


def judge(
    events: Sequence[Event], *, quiescent: bool = False, only: Collection[str] = PROPERTIES
) -> dict[str, Judgement]:
    """Judge one run: the 32 names of `PROPERTIES`, in that order, each with its evidence.

    `quiescent` pretends that every cut log has `end`; `only` these are judged. Events of several
    runs are refused with a ValueError; see `judge_runs`.
    """
    if len({event.run for event in events}) > 1:
        raise ValueError("these events belong to several runs; use judge_runs")
    run = Run(events, quiescent=quiescent)
    return {name: _judge_one(name, run) for name in PROPERTIES if name in only}


def judge_runs(
    events: Sequence[Event], *, quiescent: bool = False
) -> dict[str, dict[str, Judgement]]:
    """Judge each run by itself, by the name of the run."""
    runs = sorted({event.run for event in events})
    return {
        run: judge([event for event in events if event.run == run], quiescent=quiescent)
        for run in runs
    }


def verdicts(events: Sequence[Event], *, quiescent: bool = False) -> dict[str, str]:
    """Only the verdict of each property of one run."""
    return {name: found.verdict for name, found in judge(events, quiescent=quiescent).items()}


def unspecified(events: Sequence[Event]) -> bool:
    """Whether this run is so ill-formed that only its `wellformed` verdict means anything."""
    return integrity.unspecified(Run(events))


def _judge_one(name: str, run: Run) -> Judgement:
    if name.startswith("hybrid."):
        form = ".uniform" if name.endswith(".uniform") else ""
        one, other = HYBRIDS[name.removesuffix(".uniform")]
        return orders.both(name, _judge_one(one + form, run), _judge_one(other + form, run))
    if not NEEDS.get(name.split(".")[0], set()) <= run.kinds:
        return Judgement("n/a")
    if name in GENERAL:
        return GENERAL[name](run)
    return ORDERS[name.removesuffix(".uniform")](run, uniform=name.endswith(".uniform"))
