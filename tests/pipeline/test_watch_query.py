"""`ordercast watch` as people use it: a process of its own, beside a system that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from notation import trace
from ordercast.pipeline.streaming.journal import Journal, Status
from ordercast.pipeline.streaming.panel import Panel
from ordercast.pipeline.streaming.query import WatchOptions
from ordercast.pipeline.streaming.watcher import CHECKPOINT, Watcher, exit_code
from ordercast.trace.read import read_events
from ordercast.trace.recorder import Recorder
from ordercast.trace.write import write_csv, write_jsonl

NAMES = ("p", "q", "r")
WATCH = "from ordercast.cli.app import main; main()"

pytestmark = pytest.mark.xdist_group("spark")


class System:
    """Three processes that record; whoever calls says who delivers what when."""

    def __init__(self, folder: Path) -> None:
        self.logs = {name: Recorder(folder, run="live", process=name) for name in NAMES}
        self.sent = 0
        for log in self.logs.values():
            log.group("g", NAMES, order="total", protocol="none", scope="domain")
            log.flush()

    def send(self, *by: str) -> int:
        """p sends one more, and these deliver it."""
        self.sent += 1
        self.logs["p"].send("g", self.sent, 1, 10, 1)
        self.logs["p"].flush()
        for name in by:
            self.deliver(name, self.sent)
        return self.sent

    def deliver(self, name: str, number: int) -> None:
        self.logs[name].deliver("g", "p", number, 1, number, 4, 1)
        self.logs[name].flush()

    def close(self) -> None:
        for log in self.logs.values():
            log.end()
            log.close()


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-c", WATCH, "watch", str(folder), "--json", *options]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def read_until(
    process: subprocess.Popen[str], is_it: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    """The lines up to the first that fits; the test's own limit is the guard."""
    assert process.stdout is not None
    lines = []
    for text in process.stdout:
        lines.append(msgspec.json.decode(text))
        if is_it(lines[-1]):
            return lines
    raise AssertionError(f"it ended after {lines}")


def run_to_the_end(spark: SparkSession, folder: Path, **options: Any) -> Status:
    """Watch until everything there is judged and stable."""
    options = {"stable_ms": 100, "tick_ms": 100, **options}
    watcher = Watcher(spark, folder, folder / CHECKPOINT, WatchOptions(**options))
    try:
        while not watcher.has_caught_up():
            watcher.check()
            time.sleep(0.05)
    finally:
        watcher.stop()
    return watcher.status()


def test_a_folder_is_watched_in_small_batches_on_a_session_of_ones_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    rows = trace(
        "group g: q\np: send a g; send b g; end\nq: deliver b g; deliver a g; end", run="one"
    )
    write_jsonl(rows, folder / "one.jsonl")
    write_csv(trace("p: send a g; deliver a g; end", run="two"), folder / "two.csv")
    status = run_to_the_end(spark, folder, expected=("fifo.group",), most_rows=2)
    assert {run: one.violated for run, one in status.runs.items()} == {
        "one": ("fifo.group",), "two": (),
    }  # fmt: skip
    assert exit_code(status) == 1

    with (folder / "one.jsonl").open("a") as file:
        file.write('{"process": "r", "index": 1, "kind": "sent"}\n')
    with pytest.raises(ValueError, match=r"one\.jsonl:8, column 'kind'.*; once that is mended, na"):
        run_to_the_end(spark, folder, expected=("fifo.group",))
    assert len(list(Journal(folder / CHECKPOINT).read())) == 1

    mended = (folder / "one.jsonl").read_text().replace('"sent"', '"end"')
    (folder / "one.jsonl").write_text(mended)
    with pytest.raises(ValueError, match=r"one\.jsonl: it changed after it was read; name another"):
        run_to_the_end(spark, folder, expected=("fifo.group",))
    with pytest.raises(ValueError, match=r"judges fifo\.group; name another --checkpoint"):
        run_to_the_end(spark, folder, expected=("causal.group",))


def test_a_watch_that_is_killed_goes_on_and_tells_everything_once(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    system = System(folder)
    system.send(*NAMES)
    first, second = system.send("p", "r"), system.send("p", "r")
    system.deliver("q", second)  # the planted violation
    system.deliver("q", first)

    with watching(folder, "--stable-after", "1s") as process:
        read_until(process, lambda line: line["kind"] == "violated")
        slow = system.send("p", "q")
        read_until(process, lambda line: line["kind"] == "overdue")
        os.killpg(process.pid, signal.SIGKILL)

    system.deliver("r", slow)
    for name in ("p", "q", "p"):
        system.send(*NAMES)
        system.deliver(name, system.sent)  # a duplicate each
    system.close()
    last = f"no_duplication|p|p/g/{system.sent}"
    with watching(folder, "--stable-after", "1s") as process:
        read_until(process, lambda line: line["about"] == last)
        os.killpg(process.pid, signal.SIGTERM)  # to Java too, as service managers do
        summary = read_until(process, lambda line: line["kind"] == "summary")[-1]
        assert process.wait() == summary["exit_code"] == 1
    assert summary["runs"][0]["overdue"] == 0

    told = list(Journal(folder / CHECKPOINT).read())
    found = [(one.notice.kind, one.notice.about) for one in told]
    assert len(set(found)) == len(found)
    slow_one = f"r|p/g/{slow}"
    assert [kind for kind, about in found if about == slow_one] == ["overdue", "arrived"]
    everything = Panel().feed(read_events(folder), now_ms=0)
    assert {about for kind, about in found if kind == "violated"} == {
        notice.about for notice in everything
    }
    assert {one.notice.property for one in told if one.notice.kind == "violated"} == {
        "total.pairwise", "total.gapless", "fifo.group", "no_duplication",
    }  # fmt: skip
