"""`ordercast demo`: real processes, real sockets, a real crash, and a verdict by Spark."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from ordercast.cli.exits import console, errors_as_exits, progress
from ordercast.cli.verdicts import show
from ordercast.cli.verify import judge
from ordercast.errors import UsageError
from ordercast.runtime.local_cluster import LocalCluster
from ordercast.runtime.processes import WorkerProcess

GROUPS = {  # name -> (order, members); they overlap
    "prices": ("total", (0, 1, 2, 3)),
    "rooms": ("causal", (1, 2, 3, 4)),
    "desks": ("causal", (0, 2, 3, 4)),  # with rooms: one order across both
    "log": ("fifo", (0, 2, 4)),
}
MEMBERS = 5
VICTIM = 3
TALK = "ordercast.cli.demo_talk"


def demo(
    out: Path = typer.Option(Path("ordercast-demo"), help="Folder for traces and report."),
    messages: int = typer.Option(300, help="Questions asked by each member."),
    as_json: bool = typer.Option(False, "--json", help="Print the verdicts as JSON."),
) -> None:
    """Run a small cluster on this machine, kill a member and the sequencer, prove what held."""
    story = progress if as_json else console  # the story goes beside the result
    with errors_as_exits():
        from ordercast.pipeline.report import write_report  # without Spark nothing is started

        traces = _fresh_folder(out)
        (out / "report.html").unlink(missing_ok=True)
        story.print(f"[bold]1.[/] {MEMBERS} members and a sequencer, each its own process")
        for name, (order, members) in GROUPS.items():
            who = ", ".join(f"p{i + 1}" for i in members)
            story.print(f"   group {name}: order {order}, members {who}", highlight=False)
        story.print("   answers go to rooms or desks: causal order holds across the two")
        asyncio.run(_run_cluster(traces, messages, story))
        story.print("[bold]3.[/] judging the recorded traces with Spark")
        outcome = judge([traces], expect=[])
        report = write_report(outcome, out / "report.html")
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(outcome.as_json())).decode())
    else:
        show(outcome, console, has_report=True)
    story.print(f"[bold]4.[/] open the report: {report}", highlight=False, soft_wrap=True)
    raise typer.Exit(outcome.exit_code)


def _fresh_folder(out: Path) -> Path:
    traces = out / "traces"
    if traces.exists():
        strangers = [path.name for path in traces.iterdir() if not path.name.startswith("run=")]
        if strangers:
            raise UsageError(f"{traces} holds {strangers[0]}, which no demo wrote; give --out")
        shutil.rmtree(traces)
    traces.mkdir(parents=True)
    return traces


async def _run_cluster(traces: Path, messages: int, story: Console) -> None:
    with progress.status("starting processes") as status:
        async with LocalCluster(MEMBERS, trace=traces, run="demo", consume=False) as cluster:
            workers = cluster.workers
            for name, (order, members) in GROUPS.items():
                for i in members:
                    await workers[i].do("join", group=name, order=order)
            for i, worker in enumerate(workers):
                await worker.run(f"{TALK}:begin", seed=i)
            status.update("talking")
            part = -(-messages // 3)
            await asyncio.gather(*(w.run(f"{TALK}:ask", messages=part) for w in workers))
            survivors = [w for i, w in enumerate(workers) if i != VICTIM]
            story.print(f"[bold]2.[/] kill -9 of {workers[VICTIM].name}, while all talk")
            await _talk_while(survivors, part, cluster.kill(VICTIM))
            story.print("   kill -9 of the sequencer, while all talk: the next node takes over")
            heard = await _talk_while(survivors, part, cluster.kill_leader())
            total = sum(sum(counts.values()) for counts in heard)
            story.print(f"   the {len(survivors)} survivors delivered {total} messages")


async def _talk_while(
    workers: list[WorkerProcess], messages: int, crash: Awaitable[None]
) -> list[dict[str, int]]:
    talking = [asyncio.ensure_future(w.run(f"{TALK}:ask", messages=messages)) for w in workers]
    await crash
    return list(await asyncio.gather(*talking))
