"""When a process of Spark is killed under a command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JNetworkError

from children import heed_signals
from ordercast.pipeline.spark.failures import failures_explained

EVENTS = 600_000  # so many that a worker is busy long after it has used the time below
AT_WORK = 30  # hundredths of a second of processor time
GUARD_SECONDS = 240


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """One process that delivers a lot."""
    numbers = range(EVENTS)
    path = tmp_path / "trace.parquet"
    columns = {
        "process": ["p"] * EVENTS,
        "index": numbers,
        "kind": ["deliver"] * EVENTS,
        "message": [f"m{n}" for n in numbers],
        "group": ["g"] * EVENTS,
    }
    pq.write_table(pa.table(columns), path)
    return path


def descendants(pid: int) -> Iterator[tuple[int, str, list[str]]]:
    """Number, command and state (as in /proc/pid/stat, from the third field on) of each."""
    children: dict[int, list[tuple[int, str, list[str]]]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text().replace("\0", " ")
            state = (folder / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it has just ended
        children.setdefault(int(state[1]), []).append((int(folder.name), command, state))
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child[0])
            yield child


def workers(pid: int) -> list[int]:
    """The Python workers that are at work: children of a `pyspark.daemon`, and the same program."""
    family = [one for one in descendants(pid) if "pyspark.daemon" in one[1]]
    daemons = {number for number, _, _ in family}
    return [
        number
        for number, _, state in family
        if int(state[1]) in daemons and state[0] != "Z" and int(state[11]) >= AT_WORK
    ]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for workers in /proc")
def test_a_killed_worker_is_told_in_one_sentence_with_exit_code_4(trace: Path) -> None:
    command = [sys.executable, "-m", "ordercast", "verify", str(trace)]
    verifying = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=heed_signals,
    )  # fmt: skip
    deadline = time.monotonic() + GUARD_SECONDS
    while not (found := workers(verifying.pid)):
        assert verifying.poll() is None, verifying.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for number in found:
        os.kill(number, signal.SIGKILL)
    output, errors = verifying.communicate(timeout=GUARD_SECONDS)
    assert verifying.returncode == 4, errors
    assert output == ""
    [line] = errors.strip().splitlines()
    assert line.startswith("error: a Python worker of Spark was killed before its work was done")
    assert "run the command again" in line


@pytest.mark.parametrize(
    "error",
    [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111, "refused")],
    ids=["in a call", "before a call"],
)
def test_java_that_is_gone_is_told_in_a_sentence(error: Exception) -> None:
    ended = pytest.raises(ConnectionError, match=r"the Java process of Spark ended .*: run the")
    with ended, failures_explained():
        raise error
