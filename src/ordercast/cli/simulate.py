"""`ordercast simulate`: a run in simulated time, replayed exactly by its seed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import typer
from rich.table import Table

from ordercast.cli.exits import console, errors_as_exits, progress
from ordercast.errors import ConfigError
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.clustered import simulate_cluster
from ordercast.simulation.config import GroupConfig, SimulationConfig, overlapping_groups
from ordercast.simulation.costs import read_costs
from ordercast.simulation.faults import Crash
from ordercast.simulation.formed import formed
from ordercast.simulation.outcome import Outcome
from ordercast.simulation.run import simulate as run_simulation
from ordercast.simulation.workload import Workload


def simulate(
    protocol: str = typer.Option(..., help=f"One of {', '.join(PROTOCOLS)}."),
    members: int = typer.Option(5, help="Number of processes; all in one group, unless --groups."),
    messages: int = typer.Option(100, help="Number of multicasts; answers to them come on top."),
    reply: float = typer.Option(
        Workload().reply,
        help="Answers to a message, on average. With 0 every protocol gets the same messages.",
    ),
    loss: float = typer.Option(0.0, help="Probability that a packet is lost."),
    duplicate: float = typer.Option(0.0, help="Probability that a packet comes twice."),
    groups: int = typer.Option(
        1, help="Number of overlapping groups in a ring of processes; at most one for each process."
    ),
    crash: list[int] = typer.Option(
        [],
        help="Process that crashes half-way; may be repeated. The processes are nodes of a cluster "
        "then, which forms before the first message; the others go on in a new view.",
    ),
    seed: int = typer.Option(0, help="The same seed gives the same trace, byte for byte."),
    trace: str = typer.Option(
        "application", help="'protocol' also records packets and what is held back, and why."
    ),
    costs: Path | None = typer.Option(
        None,
        help="Costs of work: a file that `ordercast calibrate` wrote. Default: no work takes time.",
    ),
    out: Path = typer.Option(..., help="FILE.jsonl, FILE.csv, or a folder (Parquet)."),
    as_json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
) -> None:
    """Run a protocol in the deterministic simulator and write the trace."""
    with errors_as_exits():
        config = SimulationConfig(
            checks=False,  # a large run would take several times as long
            protocol=protocol,
            members=members,
            messages=messages,
            workload=Workload(reply=reply),
            loss=loss,
            duplicate=duplicate,
            groups=_groups(members, groups),
            faults=_crashes(crash, messages),
            seed=seed,
            trace=trace,  # type: ignore[arg-type]  # it is checked there
            costs=None if costs is None else read_costs(costs),
        )
        with progress.status(f"simulating {protocol} with {members} members, seed {seed}"):
            outcome = simulate_cluster(formed(config)) if crash else run_simulation(config)
        files = outcome.write(out)
    figures = {
        "run": outcome.run,
        "ended": outcome.ended,
        "files": [str(file) for file in files],
        **msgspec.to_builtins(outcome.statistics),
        **({} if costs is None else _performance(outcome)),
    }
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
        return
    table = Table(title=f"{protocol}, {members} members, seed {seed}", show_header=False)
    for name, value in figures.items():
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        table.add_row(name.replace("_", " "), shown)
    console.print(table)
    verify = f"ordercast verify {out}{_expectations(protocol)}"
    console.print(f"judge it: {verify}", highlight=False, soft_wrap=True)


def _performance(outcome: Outcome) -> dict[str, float]:
    figures = outcome.performance()
    return {
        "throughput_per_s": round(figures.throughput, 1),
        "delay_p50_ms": figures.delay_p50_ms,
        "delay_p99_ms": figures.delay_p99_ms,
        "busiest_process": round(max(figures.busy), 4),
        "longest_line": figures.longest_line,
    }


def _expectations(protocol: str) -> str:
    """A trace declares one order of a group; a protocol that gives more is asked for all."""
    declared = PROTOCOLS[protocol].declaration
    return "".join(f" --expect {order}" for order in declared.orders) if declared.also else ""


def _groups(members: int, groups: int) -> tuple[GroupConfig, ...]:
    if groups > 1 and groups > members:
        raise ConfigError(
            f"groups={groups} with members={members}: at most one group for each process, so that "
            "a group has two members or more"
        )
    size = -(-2 * members // groups) if groups > 1 else members
    return overlapping_groups(members, groups, min(size, members))


def _crashes(crash: list[int], messages: int) -> tuple[Crash, ...]:
    """The workload starts a message every millisecond, so this is about half-way."""
    return tuple(Crash(p, at_ms=1 + messages / 2) for p in crash)
