"""The one place where a Spark session is made.

A notebook brings its own session; everything else in the pipeline takes it as an argument. The
command line and the tests get theirs here: on this machine with the settings that make small
traces feel small, on a cluster with those of its owner.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from ordercast.pipeline.spark import class_archive
from ordercast.pipeline.spark.cluster_checks import await_executor, await_server, own_address
from ordercast.pipeline.spark.java import find_java
from ordercast.pipeline.spark.java_process import without_java_remarks
from ordercast.pipeline.spark.task_code import is_local, ship

SMALL_SHUFFLE_PARTITIONS = 2
LARGE_SHUFFLE_PARTITIONS = 64
CONNECT_RETRIES = 6  # a quarter of a minute per call; PySpark's own would be ten minutes
CONNECT_BACKOFF_MS = 5000
# Starts sooner, runs big jobs slower. The code cache of C1 alone is too small for a long session.
_C1_ONLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_LOOPBACK = "127.0.0.1"


def local_session(
    master: str = "local[*]",
    *,
    app_name: str = "ordercast",
    small: bool = True,
    conf: Mapping[str, str] | None = None,
    java: str = "",
) -> SparkSession:
    """A session on `master`; with `small`, tuned for traces of up to a few million events.

    `spark://host:port`, `yarn` and `k8s://...` are clusters and keep the settings of their
    spark-defaults.conf; `sc://host:port` is a Spark Connect server, which has its own. Code is sent
    to all of them. `conf` goes over everything; `java` are more options for Java on this machine.

    Raises `ConnectionError` for a cluster that does not answer.
    """
    conf = conf or {}
    if master.startswith("sc://"):
        spark = _connected(master, app_name, conf)
    elif is_local(master):
        home = _prepare_local()
        if small:
            java = f"{class_archive.options(home)} {java}"
            class_archive.make_later(home)
        spark = _started(master, app_name, {**settings(small=small, java=java), **conf})
    else:
        _prepare_cluster(master)
        spark = _started(master, app_name, conf)
    if master.startswith("spark://"):
        await_executor(spark)
    ship(spark)
    return spark


def _started(master: str, app_name: str, conf: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    with without_java_remarks(), interrupts_later():
        return builder.getOrCreate()


def _connected(url: str, app_name: str, conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    await_server(url)
    spark = SparkSession.builder.remote(url).appName(app_name).getOrCreate()
    retries = DefaultPolicy(max_retries=CONNECT_RETRIES, max_backoff=CONNECT_BACKOFF_MS)
    spark.client.set_retry_policies([retries])
    for key, value in conf.items():
        spark.conf.set(key, value)  # the builder would only warn of one that cannot be set
    return spark


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


def _prepare_local() -> Path:
    home = find_java()
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    return home


def _prepare_cluster(master: str) -> None:
    """Which Python the workers run is theirs to say: PYSPARK_PYTHON, else python3."""
    defaults = cluster_defaults(master, os.environ)
    os.environ["JAVA_HOME"] = str(find_java())
    options = [f"-D{key}={value}" for key, value in defaults.items()]
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(
        [*options, os.environ.get("SPARK_SUBMIT_OPTS", "")]
    ).strip()


def cluster_defaults(master: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What holds on a cluster where neither spark-defaults.conf nor the caller says otherwise.

    Spark takes these as properties of its Java process, the weakest source it has.
    """
    defaults = {
        "log4j2.configurationFile": _log4j(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    if master.startswith("spark://"):
        address = own_address(master)
        if not {"SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"} & environ.keys():
            defaults["spark.driver.host"] = address
    return defaults


def settings(*, small: bool, java: str = "") -> dict[str, str]:
    """Spark's configuration where all of it runs on this machine; `java` are options for Java."""
    options = (f"-Dlog4j2.configurationFile={_log4j()}", _C1_ONLY if small else "", java)
    partitions = SMALL_SHUFFLE_PARTITIONS if small else LARGE_SHUFFLE_PARTITIONS
    return {
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.driver.memory": "2g" if small else "8g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.python.worker.reuse": "true",
    }


def _log4j() -> str:
    return Path(__file__).with_name("log4j2.properties").as_uri()  # no spaces in an option
