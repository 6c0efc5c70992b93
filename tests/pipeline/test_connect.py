"""The same commands and functions over Spark Connect, on a server without this package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ordercast.pipeline.spark.cluster_checks import await_server
from spark_servers import connect_server, free_port, spark_environ

pytestmark = pytest.mark.xdist_group("servers")

TRACE = """\
process,index,kind,message,group,time
p,1,send,a,g,1000
p,2,send,b,g,2000
p,3,end,,,
q,1,deliver,b,g,5000
q,2,deliver,a,g,6000
q,3,end,,,
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with connect_server(folder) as url:
        yield url


@pytest.fixture(scope="module")
def trace(folder: Path) -> Path:
    path = folder / "trace.csv"
    path.write_text(TRACE)
    return path


def run_python(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """This Python as a client. It needs no Java."""
    environ = spark_environ(folder) | {"JAVA_HOME": "/nowhere", "PATH": os.defpath}
    return subprocess.run(
        [sys.executable, "-c", *map(str, arguments)],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=240,
    )  # fmt: skip


ORDERCAST = "import sys; from ordercast.cli.app import main; sys.exit(main())"


def test_the_command_judges_over_connect(server: str, folder: Path, trace: Path) -> None:
    done = run_python(
        folder, ORDERCAST, "verify", trace, "--json", "--expect", "fifo", "--master", server,
        "--conf", "spark.sql.shuffle.partitions=3",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert run["verdicts"]["fifo.global"] == "violated"
    assert done.stderr == ""


OWN_SESSION = """
import json, sys
from pyspark.sql import SparkSession
from ordercast.pipeline import measure, read_traces, verify, violations
from ordercast.pipeline.spark.task_code import package_zip

url, trace = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()
try:
    spark.range(1).mapInArrow(package_zip, "id long").collect()
except Exception as error:
    before = str(error).splitlines()
found = {}
for name, small_bytes in (("read here", 1_000_000), ("read by tasks", 0)):
    events = read_traces(spark, [trace], small_bytes=small_bytes)
    verdicts = verify(events)
    found[name] = [row.sentence for row in violations(verdicts).orderBy("property").collect()]
latency = measure(events, per=["run"]).where("metric = 'latency'").first()
print(json.dumps({"before": before, "found": found, "latency": [latency.min, latency.max]}))
"""


@pytest.fixture(scope="module")
def own_session(server: str, folder: Path, trace: Path) -> dict[str, Any]:
    """What a program with a session of its own found."""
    done = run_python(folder, OWN_SESSION, server, trace)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_server_knows_the_package_only_because_it_is_sent(own_session: dict[str, Any]) -> None:
    assert "ModuleNotFoundError: No module named 'ordercast'" in own_session["before"]
    assert "q delivers b before a, but p sent a before b" in own_session["found"]["read here"]


def test_tasks_of_the_server_read_the_same_as_the_client(own_session: dict[str, Any]) -> None:
    assert own_session["found"]["read here"] == own_session["found"]["read by tasks"]


def test_measures_are_taken_over_connect(own_session: dict[str, Any]) -> None:
    assert own_session["latency"] == [3000, 5000]


def test_a_setting_of_the_server_cannot_be_changed_and_that_is_said(
    server: str, folder: Path, trace: Path
) -> None:
    setting = "spark.executor.memory=4g"
    done = run_python(folder, ORDERCAST, "verify", trace, "--master", server, "--conf", setting)
    assert done.returncode == 2
    assert "spark.executor.memory" in done.stderr and "Traceback" not in done.stderr


def test_a_server_that_is_not_there_is_told_at_once(folder: Path, trace: Path) -> None:
    url = f"sc://127.0.0.1:{free_port()}"
    done = run_python(folder, ORDERCAST, "verify", trace, "--master", url)
    assert done.returncode == 4
    assert f"no Spark Connect server answers at {url}" in done.stderr


def test_what_is_no_address_of_a_server_is_refused() -> None:
    with pytest.raises(ValueError, match="is no address of a Spark Connect server"):
        await_server("sc://host:many")
