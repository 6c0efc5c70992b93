"""The one place where a Spark session is made.

A notebook brings its own session; everything else in the pipeline takes it as an argument. The
command line and the tests get theirs here, with the settings that make small traces feel small.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from ordercast.pipeline.hush import hushed
from ordercast.pipeline.java import find_java

SMALL_SHUFFLE_PARTITIONS = 2
LARGE_SHUFFLE_PARTITIONS = 64
_C1_ONLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # starts sooner, runs big jobs slower
_LOOPBACK = "127.0.0.1"
_ON_THIS_MACHINE = {  # the workers of a cluster must be able to call back
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
}


def local_session(
    master: str = "local[*]", *, app_name: str = "ordercast", small: bool = True
) -> SparkSession:
    """A session on `master`; with `small`, tuned for traces of up to a few million events.

    `sc://host:port` connects to a Spark Connect server, which has its own settings.
    """
    if master.startswith("sc://"):
        return SparkSession.builder.remote(master).appName(app_name).getOrCreate()
    _prepare_environment(master)
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in settings(master, small=small).items():
        builder = builder.config(key, value)
    with hushed(), interrupts_later():
        return builder.getOrCreate()


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Ctrl-C waits until Spark has started, and then does what it did before.

    Interrupted half-way, the start leaves a Java process behind. Afterwards PySpark's own handler
    would talk to Java from inside the signal, which may be in a call already.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = []
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


def _prepare_environment(master: str) -> None:
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)


def settings(master: str, *, small: bool) -> dict[str, str]:
    """Spark's configuration; the address of the driver is fixed only if all runs here."""
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()  # no spaces in an option
    java_options = f"-Dlog4j2.configurationFile={log4j}"
    if small:
        java_options += f" {_C1_ONLY}"
    partitions = SMALL_SHUFFLE_PARTITIONS if small else LARGE_SHUFFLE_PARTITIONS
    return {
        **(_ON_THIS_MACHINE if master.startswith("local") else {}),
        "spark.driver.extraJavaOptions": java_options,
        "spark.driver.memory": "2g" if small else "8g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.python.worker.reuse": "true",
    }
