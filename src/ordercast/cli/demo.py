"""`ordercast demo`: brokers' price boards with real crashes, and a verdict by Spark."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from ordercast.cli.demo_cluster import BROKERS, ITEMS, SEQUENCERS, Closing, Exchange
from ordercast.cli.exits import VIOLATED, console, errors_as_exits, progress
from ordercast.cli.verdicts import show
from ordercast.cli.verify import judge
from ordercast.errors import UsageError

PROMISES = (  # of order hybrid, one by one, and of the membership
    "wellformed", "no_duplication", "no_creation", "validity", "agreement", "membership", "views",
    "vsync", "fifo.global", "causal.global", "total.group", "total.gapless", "hybrid.kindberg",
)  # fmt: skip
VICTIM = "dora"
MOVED = "CMC"  # the Computer Manufacturing Company; it buys chips


def demo(
    out: Path = typer.Option(Path("ordercast-demo"), help="Folder for traces and report."),
    messages: int = typer.Option(300, help="Price changes that each broker makes, at least."),
    as_json: bool = typer.Option(False, "--json", help="Print the verdicts as JSON."),
) -> None:
    """Run brokers' price boards on this machine, kill a broker and a sequencer, prove what held."""
    story = progress if as_json else console  # the story goes beside the result
    with errors_as_exits():
        from ordercast.pipeline.report import write_report  # without Spark nothing is started

        traces = _fresh_folder(out)
        (out / "report.html").unlink(missing_ok=True)
        _introduce(story)
        closing = asyncio.run(_trade(traces, messages, story))
        _tell(closing, story)
        story.print("[bold]3.[/] judging with Spark what all processes recorded")
        outcome = judge([traces], expect=[*PROMISES])
        report = write_report(outcome, out / "report.html")
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(outcome.as_json())).decode())
    else:
        show(outcome, console, has_report=True)
    story.print(f"[bold]4.[/] open the report: {report}", highlight=False, soft_wrap=True)
    raise typer.Exit(outcome.exit_code or (0 if closing.holds else VIOLATED))


def _introduce(story: Console) -> None:
    story.print(
        f"[bold]1.[/] {len(BROKERS)} brokers and {SEQUENCERS} sequencers, each its own process"
    )
    for item, watchers in ITEMS.items():
        story.print(f"   board of {item}: watched by {', '.join(watchers)}", highlight=False)
    story.print("   order hybrid: each board the same for all, and no sale before its reason")


def _fresh_folder(out: Path) -> Path:
    traces = out / "traces"
    if traces.exists():
        strangers = [path.name for path in traces.iterdir() if not path.name.startswith("run=")]
        if strangers:
            raise UsageError(f"{traces} holds {strangers[0]}, which no demo wrote; give --out")
        shutil.rmtree(traces)
    traces.mkdir(parents=True)
    return traces


async def _trade(traces: Path, messages: int, story: Console) -> Closing:
    part = -(-messages // 3)
    with progress.status("starting processes") as status:
        async with Exchange(traces) as exchange:
            status.update("trading")
            async with exchange.trading(part):
                await exchange.kill_broker(VICTIM)
                story.print(f"[bold]2.[/] kill -9 of broker {VICTIM}, while all trade")
            async with exchange.trading(part):
                before, after = await exchange.move(MOVED)
                story.print(f"   board of {MOVED} moves from {before} to {after}, while all trade")
            async with exchange.trading(part):
                name = await exchange.kill_sequencer_of(MOVED)
                story.print(f"   kill -9 of {name}, which numbers {MOVED}: another takes over")
            return await exchange.closing()


def _tell(closing: Closing, story: Console) -> None:
    prices = ", ".join(f"{item} {price:g}" for item, price in closing.prices.items())
    story.print(f"   {closing.changes} changes later: {prices}", highlight=False)
    if closing.differing:
        story.print(f"   [bold red]boards differ: {', '.join(closing.differing)}[/]")
    else:
        story.print("   each board is the same at all who are left")
    story.print(f"   {closing.sales} sales seen, {closing.too_early} of them before their reason")
