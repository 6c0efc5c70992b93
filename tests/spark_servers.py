"""Real Spark servers for tests: a standalone cluster and a Connect server, from the pip package.

Their workers run a Python that cannot import `ordercast`, as on a cluster where nobody installed
it. Every server ends with the block that started it, and also if the tests themselves are killed:
each waits for the end of its standard input.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

import pyspark

from ordercast.pipeline.spark import class_archive
from ordercast.pipeline.spark.java import find_java

START_SECONDS = 120
STOP_SECONDS = 30
SPARK = Path(pyspark.__file__).parent
SMALL_JAVA = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {class_archive.options(find_java())}"

_UNTIL_STDIN_ENDS = '"$@" & cat >/dev/null; kill $!; wait $!'
_WITHOUT_SITE = """\
#!/bin/sh
PYTHONPATH="{packages}:$PYTHONPATH" exec {python} -S "$@"
"""


def foreign_python(folder: Path) -> Path:
    """A Python with all packages of this environment but those installed from a checkout.

    Without `site` nobody reads the .pth file that leads to our sources.
    """
    script = folder / "foreign-python"
    script.write_text(_WITHOUT_SITE.format(packages=SPARK.parent, python=sys.executable))
    script.chmod(0o755)
    return script


def spark_environ(folder: Path) -> dict[str, str]:
    """The environment of servers and drivers: no Spark settings but ours, no path to our code."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))
    }
    return kept | {
        "JAVA_HOME": str(find_java()),
        "PYSPARK_PYTHON": str(foreign_python(folder)),
        "SPARK_DAEMON_JAVA_OPTS": SMALL_JAVA,
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each; gives the address of the master."""
    launcher, deploy = str(SPARK / "bin" / "spark-class"), "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        command = [launcher, f"{deploy}.master.Master", *here]
        server = stack.enter_context(_server(command, folder))
        master = _first_found(r"Starting Spark master at (\S+)", server)
        workers = []
        for name in ("worker-1", "worker-2"):
            command = [launcher, f"{deploy}.worker.Worker", *here, "--cores", "1"]
            command += ["--memory", "1g", "--work-dir", str(folder / name), master]
            workers.append(stack.enter_context(_server(command, folder)))
        for worker in workers:
            _first_found(r"Successfully registered with master (\S+)", worker)
        yield master


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server with two cores; gives its address."""
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.extraJavaOptions": SMALL_JAVA,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [str(SPARK / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    with _server([*command, "spark-internal"], folder) as server:
        port = _first_found(r"Spark Connect server started at: \S+?:(\d+)", server)
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _server(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run `command` while the block runs."""
    process = subprocess.Popen(
        ["sh", "-c", _UNTIL_STDIN_ENDS, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=spark_environ(folder),
        cwd=folder,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        finally:
            with suppress(ProcessLookupError):  # the usual case: nothing is left of it
                os.killpg(process.pid, signal.SIGKILL)


def _first_found(pattern: str, process: subprocess.Popen[str]) -> str:
    """The first match in the output, which is read to its end so that the server never blocks."""
    found: SimpleQueue[str] = SimpleQueue()
    lines: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if match := re.search(pattern, line):
                found.put(match[1])
        found.put("")

    Thread(target=read, daemon=True).start()
    try:
        match = found.get(timeout=START_SECONDS)
    except Empty:
        match = ""
    assert match, "".join(lines[-40:])
    return match
