"""Is the cluster there, and do its workers see our files? Said in words, where Spark would not.

Whether it is there is asked before Spark is, which would try for minutes and say nothing.

Nothing is asked of YARN and Kubernetes: their clients have limits of their own.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from ordercast.errors import TraceError
from ordercast.trace.layout import sealed_path

ANSWER_SECONDS = 10.0  # a server that has not answered by then counts as gone
EXECUTOR_SECONDS = 60.0  # by then a standalone cluster with a free worker has started an executor

_DEFAULT_PORT = 7077


def own_address(master: str) -> str:
    """The address of this machine on the way to `spark://host:port[,host:port]`.

    Executors can call back there. Raises `ConnectionError` if none of the masters answers.
    """
    reasons = []
    for place in master.removeprefix("spark://").split(","):
        host, port = _host_and_port(place, master)
        try:
            with socket.create_connection((host, port), timeout=ANSWER_SECONDS) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    raise ConnectionError(f"no Spark master answers at {master} ({'; '.join(reasons)})")


def _host_and_port(place: str, master: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":") if ":" in place else (place, "", str(_DEFAULT_PORT))
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{master!r} is no Spark master; for example spark://host:7077")
    return host.strip("[]"), int(port)


def await_server(url: str) -> None:
    """Return when the Spark Connect server at `sc://host:port` answers.

    Raises `ConnectionError` if it does not, `ValueError` if that is no such address.
    """
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except (PySparkException, ValueError) as error:
        raise ValueError(f"{url!r} is no address of a Spark Connect server: {error}") from None
    try:
        grpc.channel_ready_future(channel).result(timeout=ANSWER_SECONDS)
    except grpc.FutureTimeoutError:
        raise ConnectionError(
            f"no Spark Connect server answers at {url} within {ANSWER_SECONDS:g} s"
        ) from None
    finally:
        channel.close()


def await_executor(spark: SparkSession, seconds: float = EXECUTOR_SECONDS) -> None:
    """Return when the cluster has done a first, empty job.

    Raises `ConnectionError`, with the session stopped, if nobody takes it within `seconds`.
    """
    failures: list[Exception] = []

    def job() -> None:
        try:
            spark.range(1).count()
        except Exception as failure:
            failures.append(failure)

    first = Thread(target=job, daemon=True)
    first.start()
    first.join(seconds)
    if first.is_alive():
        asked = _asked_for(spark)
        spark.stop()
        raise ConnectionError(
            f"no worker of the cluster took a task within {seconds:g} s. Either no worker is free "
            f"that has what an executor asks for ({asked}), or its executors do not reach this "
            "machine (spark.driver.host); the pages of the master and its workers tell which"
        )
    if failures:
        raise failures[0]


def _asked_for(spark: SparkSession) -> str:
    conf = spark.sparkContext.getConf()
    wanted = (("spark.executor.memory", "1g"), ("spark.executor.cores", "all"))
    return ", ".join(f"{key}={conf.get(key, default)}" for key, default in wanted)


def check_files_visible(files: Iterable[str | Path]) -> None:
    """In a task: raise `TraceError` for the first of these files that this machine cannot see.

    Only trace files that are there on the driver are handed to tasks. A segment may have been
    sealed since.
    """
    for file in files:
        path = Path(file)
        if not (path.exists() or sealed_path(path).exists()):
            raise TraceError(
                file,
                None,
                None,
                f"not visible on the Spark worker {socket.gethostname()}; large traces must lie "
                "where every worker sees them under the same path, for example in a shared folder",
            )
