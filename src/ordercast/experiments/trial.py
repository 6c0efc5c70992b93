"""One run of a sweep, from its coordinates to its row: simulate, judge, measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec

from ordercast.experiments.arrange import arranged, largest_part
from ordercast.experiments.contexts import Contexts
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.false_order import Vectors, false_order, layers
from ordercast.experiments.judging import Verdict, verdict_on
from ordercast.experiments.moving import HandOvers, clustered, figures_of_moves
from ordercast.experiments.needless import waiting_of
from ordercast.experiments.readings import readings_of
from ordercast.experiments.survivors import differences_of
from ordercast.experiments.variants import not_expected
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.clustered import simulate_cluster
from ordercast.simulation.config import SimulationConfig
from ordercast.simulation.costs import CostModel
from ordercast.simulation.formed import formed
from ordercast.simulation.outcome import Outcome
from ordercast.simulation.processors import Processors
from ordercast.simulation.run import no_collection, simulate
from ordercast.trace.layout import run_folder
from ordercast.trace.tables import event_table, write_table

Row = dict[str, Any]  # by the names of the columns


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is to be made, as a task is told."""

    run: str  # its identity
    at: Coordinates
    costs: CostModel | None
    trace: Literal["application", "protocol"]
    needless: bool
    false_order: bool = False
    keep: Literal["all", "none", "failed"]


class Stopwatch:
    """Processor time of this process, by what it was spent on."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("simulate_s", "judge_s", "measure_s", "write_s"), 0.0)

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Inside, time is spent on this."""
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[what] += time.process_time() - start


def run_trial(trial: Trial, traces: Path) -> Row:
    """Its row. An exception of a machine is a finding like any other, and no end of the sweep."""
    with no_collection():
        return _run(trial, traces)


def _run(trial: Trial, traces: Path) -> Row:
    watch = Stopwatch()
    config = arranged(trial.at, trial.costs, trial.trace)
    row = {"run": trial.run, "traced": False, **coordinates_of(trial.at)}
    try:
        with watch.on("simulate_s"):
            outcome, special = _simulated(trial, config)
        outcome.run = trial.run
        with watch.on("judge_s"):
            verdict = verdict_on(outcome, trial.at.protocol, not_expected=not_expected(trial.at))
        with watch.on("measure_s"):
            row |= figures_of(outcome, config, trial) | special()
    except Exception as error:
        verdict, outcome = Verdict("failed", (), f"{type(error).__name__}: {error}"), None
    row |= msgspec.structs.asdict(verdict)
    wanted = trial.keep == "all" or (trial.keep == "failed" and verdict.verdict != "kept")
    if wanted and outcome is not None:
        with watch.on("write_s"):
            _write_trace(outcome, traces)
        row["traced"] = True
    return row | watch.seconds


def _simulated(trial: Trial, config: SimulationConfig) -> tuple[Outcome, Callable[[], Row]]:
    """The run; and how to get the figures that only runs of its kind have."""
    at = trial.at
    if at.moves:
        seen = HandOvers()
        moved = simulate_cluster(clustered(at, config, seen))
        return moved, lambda: figures_of_moves(at, seen, moved.log)
    if at.crashes:
        return simulate_cluster(formed(config)), dict
    if trial.false_order and PROTOCOLS[at.protocol].has_subgroups:
        vectors = Vectors(layers(config))
        watched = simulate(msgspec.structs.replace(config, transform=vectors.look))
        return watched, lambda: msgspec.structs.asdict(false_order(watched.events(), vectors))
    if PROTOCOLS[at.protocol].together is None:
        return simulate(config), dict
    contexts = Contexts()
    outcome = simulate(msgspec.structs.replace(config, transform=contexts))
    return outcome, lambda: {
        "context_mean": contexts.mean(),
        "largest_part": largest_part(config),
    }


def coordinates_of(at: Coordinates) -> Row:
    """The columns that say where in the grid it is."""
    plain = {name: getattr(at, name) for name in Coordinates.__struct_fields__}
    options = msgspec.json.encode(dict(at.options), order="sorted").decode()
    return {**plain, "options": options, "overlap": at.overlap}


def figures_of(outcome: Outcome, config: SimulationConfig, trial: Trial) -> Row:
    """The columns with figures; those that this run cannot tell are left out."""
    counts, speed = outcome.statistics, outcome.performance()
    sent = max(counts.multicasts, 1)
    row: Row = {
        "ended": outcome.ended,
        "sent": counts.multicasts,
        "unsent": counts.unsent,
        "deliveries": counts.deliveries,
        "simulated_ms": counts.simulated_ms,
        "span_ms": speed.span_ms,
        "throughput_per_s": speed.throughput,
        "delay_mean_ms": speed.delay_mean_ms,
        "delay_p50_ms": speed.delay_p50_ms,
        "delay_p95_ms": speed.delay_p95_ms,
        "delay_p99_ms": speed.delay_p99_ms,
        "delay_all_ms": speed.delay_all_ms,
        "packets": counts.packets,
        "packets_per_message": counts.packets / sent,
        "payload_bytes": counts.payload_bytes,
        "most_bytes_sent": counts.most_bytes_sent,
        "lost": counts.lost,
        "duplicates": counts.duplicates,
        "retransmissions": counts.retransmissions,
    }
    is_given = not trial.at.moves and not trial.at.crashes  # groups, and not those of a cluster
    if trial.trace == "protocol" and is_given:
        row |= _watched(outcome, sent)
    if outcome.processors is not None:
        total_us = outcome.processors.total_us()
        row |= {
            "cpu_ms": total_us / 1000,
            "cpu_us_per_message": total_us / sent,
            "busiest": max(speed.busy),
            "busiest_us_per_message": outcome.processors.most_us() / sent,
            "median_us_per_message": median_us(outcome.processors) / sent,
            "longest_line": speed.longest_line,
        }
    if trial.at.crashes:
        row |= msgspec.structs.asdict(differences_of(outcome.log))
    if trial.needless and trial.trace == "protocol" and is_given:
        declared = PROTOCOLS[trial.at.protocol].declaration
        waiting, single = waiting_of(outcome.log, declared, config.groups_of())
        row |= {
            "needless_waits": waiting.needless_waits,
            "needless_ms": waiting.needless_ms,
            "needless_share": waiting.share,
            "single_waits": single.waits,
            "single_needless_waits": single.needless_waits,
            "single_hold_back_mean_ms": single.mean_ms,
        }
    return row


def median_us(processors: Processors) -> float:
    """What the process worked that is in the middle, in the whole run."""
    return median(sum(worked.values()) for worked in processors.worked)


def _watched(outcome: Outcome, sent: int) -> Row:
    """What a log at protocol level tells."""
    seen = readings_of(outcome.log)
    return {
        "packets_received": seen.packets_received,
        "packet_kinds": list(seen.packet_kinds.items()),
        "header_bytes": seen.header_bytes,
        "header_bytes_per_message": seen.header_bytes / sent,
        "header_mean_bytes": seen.brought_bytes / seen.brought if seen.brought else None,
        "remarks": list(seen.remarks.items()),
        "waited": seen.waited,
        "hold_back_mean_ms": seen.held_mean_ms,
        "hold_back_p50_ms": seen.held_ms(0.50),
        "hold_back_p95_ms": seen.held_ms(0.95),
        "hold_back_p99_ms": seen.held_ms(0.99),
    }


def _write_trace(outcome: Outcome, traces: Path) -> None:
    """Whole or not at all: `verify` may read the folder while a sweep goes on."""
    file = run_folder(traces, outcome.run) / "events.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name("_events.new")
    write_table(event_table(outcome.events()), draft)
    draft.replace(file)
