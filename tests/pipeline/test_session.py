"""Starting Spark."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ordercast.pipeline.spark
from ordercast.pipeline.spark import class_archive
from ordercast.pipeline.spark.java import find_java
from ordercast.pipeline.spark.java_process import without_java_remarks
from ordercast.pipeline.spark.session import interrupts_later, local_session, settings

START = """
from ordercast.pipeline.spark.session import local_session
spark = local_session("local[1]")
print(spark.range(3).count())
try:
    spark.range(1).selectExpr("raise_error('no')").collect()
except Exception as error:
    print(type(error).__name__)
"""
LOG_SETTINGS = Path(ordercast.pipeline.spark.__file__).with_name("log4j2.properties")


def test_spark_starts_and_a_task_fails_without_a_word(tmp_path: Path) -> None:
    """Also with an archive of classes that is none."""
    environ = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    home = find_java(environ)
    archive = class_archive.path(home, environ)
    assert archive is not None
    archive.parent.mkdir(exist_ok=True)
    archive.write_bytes(b"no archive" * 1000)
    assert str(archive) in class_archive.options(home, environ)
    started = subprocess.run(
        [sys.executable, "-c", START],
        capture_output=True, text=True, timeout=180, check=True, env=environ,
    )  # fmt: skip
    assert (started.stdout, started.stderr) == ("3\nSparkRuntimeException\n", "")


@pytest.mark.xdist_group("spark")
def test_every_class_that_is_told_to_be_quiet_exists(spark: SparkSession) -> None:
    names = re.findall(r"^logger\.\w+\.name = (.+)$", LOG_SETTINGS.read_text(), re.MULTILINE)
    assert "MicroBatchExecution" in " ".join(names)
    assert spark._jvm is not None
    for name in names:
        spark._jvm.java.lang.Class.forName(name)


@pytest.mark.xdist_group("spark")
def test_a_second_call_gives_the_session_that_runs(spark: SparkSession) -> None:
    assert local_session("local[2]", app_name="tests") is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_only_the_two_remarks_are_kept_back(tmp_path: Path) -> None:
    """Standard error is a file here: capfd loses what comes between its two readings."""
    told, kept = tmp_path / "told", os.dup(2)
    with told.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        with without_java_remarks():
            child = subprocess.Popen(
                ["sh", "-c", "echo WARNING: Using incubator modules: jdk.incubator.vector >&2;"
                 "echo out of memory >&2"],
            )  # fmt: skip
        child.wait()
        while "out of memory" not in told.read_text():  # the filter runs in a thread of its own
            time.sleep(0.001)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    assert "incubator" not in told.read_text()


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
