"""`ordercast demo`: brokers' price boards with real crashes, and a verdict by Spark."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from ordercast.cli.demo_cluster import BROKERS, ITEMS, SEQUENCERS, Closing, Exchange
from ordercast.cli.exits import VIOLATED, console, errors_as_exits, escape, progress
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
    story = Story(progress if as_json else console)  # it goes beside the result
    with errors_as_exits():
        from ordercast.judge.report import write_report  # without Spark nothing is started

        traces = _fresh_folder(out)
        (out / "report.html").unlink(missing_ok=True)
        story.begin("who takes part")
        _introduce(story)
        story.begin("what happens")
        closing = asyncio.run(_trade(traces, messages, story))
        _close(closing, story)
        story.begin("judging with Spark what all processes recorded")
        outcome = judge([traces], expect=[*PROMISES])
        report = write_report(outcome, out / "report.html", story=story.steps)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(outcome.as_json())).decode())
    else:
        show(outcome, console, has_report=True)
    story.begin(f"open the report: {report}")
    raise typer.Exit(outcome.exit_code or (0 if closing.holds else VIOLATED))


class Story:
    """What is told while it happens, and once more in the report."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._chapters = 0
        self.steps: list[str] = []

    def begin(self, chapter: str) -> None:
        """A heading; the report has its own."""
        self._chapters += 1
        text = f"[bold]{self._chapters}.[/] {escape(chapter)}"
        self._console.print(text, highlight=False, soft_wrap=True)

    def tell(self, step: str) -> None:
        """One thing that is so, or happens."""
        self.steps.append(step)
        self._console.print(f"   {escape(step)}", highlight=False, soft_wrap=True)


def _introduce(story: Story) -> None:
    story.tell(f"{len(BROKERS)} brokers and {SEQUENCERS} sequencers start, each its own process")
    boards = "; ".join(f"{item} by {', '.join(names)}" for item, names in ITEMS.items())
    story.tell(f"every item is a group of the brokers who watch it: {boards}")
    story.tell(
        "a broker sells one item because of another: CMC, the Computer Manufacturing Company, "
        "because chips rise"
    )
    story.tell("order hybrid: each board the same for all, and no sale seen before its reason")


def _fresh_folder(out: Path) -> Path:
    traces = out / "traces"
    if traces.exists():
        strangers = [path.name for path in traces.iterdir() if not path.name.startswith("run=")]
        if strangers:
            raise UsageError(f"{traces} holds {strangers[0]}, which no demo wrote; give --out")
        shutil.rmtree(traces)
    traces.mkdir(parents=True)
    return traces


async def _trade(traces: Path, messages: int, story: Story) -> Closing:
    part = -(-messages // 3)
    with progress.status("starting processes") as status:
        async with Exchange(traces) as exchange:
            status.update("trading")
            async with exchange.trading(part):
                await exchange.kill_broker(VICTIM)
                story.tell(f"kill -9 of broker {VICTIM}, while all trade")
            async with exchange.trading(part):
                before, after = await exchange.move(MOVED)
                story.tell(f"{MOVED} moves from {before} to {after}, while all trade")
            async with exchange.trading(part):
                name = await exchange.kill_sequencer_of(MOVED)
                story.tell(f"kill -9 of {name}, which numbers {MOVED}, while all trade")
            return await exchange.closing()


def _close(closing: Closing, story: Story) -> None:
    prices = ", ".join(f"{item} {price:g}" for item, price in closing.prices.items())
    story.tell(f"{closing.changes} changes later: {prices}")
    differing = ", ".join(closing.differing)
    story.tell(f"BOARDS DIFFER: {differing}" if differing else "all who are left have equal boards")
    story.tell(f"{closing.sales} sales seen, {closing.too_early} of them before their reason")
