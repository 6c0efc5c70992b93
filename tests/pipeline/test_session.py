"""Starting Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from ordercast.pipeline.spark.hush import hushed
from ordercast.pipeline.spark.session import interrupts_later, local_session, settings

START = """
from ordercast.pipeline.spark.session import local_session
print(local_session("local[1]").range(3).count())
"""


def test_spark_starts_without_a_word() -> None:
    started = subprocess.run(
        [sys.executable, "-c", START], capture_output=True, text=True, timeout=180, check=True
    )
    assert (started.stdout, started.stderr) == ("3\n", "")


@pytest.mark.xdist_group("spark")
def test_a_second_call_gives_the_session_that_runs(spark: SparkSession) -> None:
    assert local_session("local[2]", app_name="tests") is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_only_the_two_remarks_are_kept_back(capfd: pytest.CaptureFixture[str]) -> None:
    with hushed():
        child = subprocess.Popen(
            ["sh", "-c", "echo WARNING: Using incubator modules: jdk.incubator.vector >&2;"
             "echo out of memory >&2"],
        )  # fmt: skip
    child.wait()
    os.write(2, b"and we\n")
    told = ""
    while "out of memory" not in told:  # the filter runs in a thread of its own
        told += capfd.readouterr().err
    assert "incubator" not in told


def test_on_this_machine_the_driver_is_reached_over_loopback() -> None:
    assert settings(small=True)["spark.driver.host"] == "127.0.0.1"


def test_ctrl_c_while_spark_starts_waits_until_it_has_started() -> None:
    before = signal.getsignal(signal.SIGINT)
    started = False
    with pytest.raises(KeyboardInterrupt), interrupts_later():
        os.kill(os.getpid(), signal.SIGINT)
        started = True
    assert started
    assert signal.getsignal(signal.SIGINT) is before
