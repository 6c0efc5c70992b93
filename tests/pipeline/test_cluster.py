"""The same commands on a standalone Spark cluster whose workers do not have this package."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli.spark import spark_settings
from ordercast.errors import ConfigError, TraceError
from ordercast.experiments import read_plan
from ordercast.pipeline.spark.cluster_checks import check_files_visible, own_address
from ordercast.pipeline.spark.failures import explained
from ordercast.pipeline.spark.session import cluster_defaults
from ordercast.pipeline.spark.task_code import is_local, package_zip
from ordercast.trace.layout import sealed_path
from spark_servers import SMALL_JAVA, free_port, spark_environ, standalone_cluster
from swept import swept_here, write_plan

CLUSTER_OWNER = f"""
spark.executor.memory           600m
spark.executor.extraJavaOptions {SMALL_JAVA}
spark.sql.session.timeZone      Europe/Berlin
spark.sql.shuffle.partitions    2
"""
MESSAGES = 8000  # so many that the files are read by the executors and not by the driver


def write_trace(folder: Path) -> None:
    """Two runs of two processes each. In the second, q delivers the last two out of order."""
    for run in ("one", "two"):
        sends = [f"p,{n},send,message-{n},g" for n in range(MESSAGES)]
        arrivals = [f"q,{n},deliver,message-{n},g" for n in range(MESSAGES)]
        if run == "two":
            arrivals[-2:] = [
                f"q,{MESSAGES - 2},deliver,message-{MESSAGES - 1},g",
                f"q,{MESSAGES - 1},deliver,message-{MESSAGES - 2},g",
            ]
        rows = ["process,index,kind,message,group", *sends, *arrivals, *(
            f"{process},{MESSAGES},end,," for process in "pq"
        )]  # fmt: skip
        path = folder / f"run={run}" / "trace.csv"
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[str]:
    with standalone_cluster(folder) as master:
        yield master


@pytest.fixture(scope="module")
def trace(folder: Path) -> Path:
    write_trace(folder / "trace")
    return folder / "trace"


def run_python(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """This Python as a driver, with the settings of the owner of the cluster."""
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "spark-defaults.conf").write_text(CLUSTER_OWNER)
    environ = spark_environ(folder) | {"SPARK_CONF_DIR": str(conf)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=240,
    )  # fmt: skip


def ordercast(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    start = "import sys; from ordercast.cli.app import main; sys.exit(main())"
    return run_python(["-c", start, *map(str, arguments)], folder)


# One process and one Java for all: to start them costs more than what they do here.
DRIVER = """
import json, sys
from pyspark.sql import SparkSession
from typer.testing import CliRunner
from ordercast.cli.app import app
from ordercast.pipeline import read_traces, verify
from ordercast.pipeline.spark.cluster_checks import await_executor
from ordercast.pipeline.spark.task_code import package_zip
from ordercast.pipeline.spark.session import local_session

def lines_of(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return str(error).splitlines()

master, trace, plan, swept = sys.argv[1:]
commands = {
    "verify": ["verify", trace, "--json", "--expect", "fifo", "--master", master],
    "sweep": ["sweep", plan, "--out", swept, "--master", master],
}
found = {}
for name, command in commands.items():
    done = CliRunner().invoke(app, command)
    found[name] = {"code": done.exit_code, "stdout": done.stdout, "stderr": done.stderr}
spark = local_session(master, conf={"spark.sql.shuffle.partitions": "3"})
conf = {key: value for key, value in spark.sparkContext.getConf().getAll()}
spark.stop()

spark = SparkSession.builder.master(master).getOrCreate()
before = lines_of(spark.range(1).mapInArrow(package_zip, "id long").collect)
events = read_traces(spark, [trace])
verdicts = [row.verdict for row in verify(events).where("property = 'fifo.group'").collect()]
spark.stop()

greedy = SparkSession.builder.master(master).config("spark.executor.memory", "900g").getOrCreate()
nobody = lines_of(await_executor, greedy, 3.0)
own = {"before": before, "verdicts": verdicts, "conf": conf, "nobody": nobody}
print(json.dumps({**found, "own": own}))
"""


@pytest.fixture(scope="module")
def done(cluster: str, folder: Path, trace: Path) -> dict[str, Any]:
    """What the commands did on the cluster, and then a program with sessions of its own."""
    plan = write_plan(folder / "sweep")
    words = ["-c", DRIVER, cluster, str(trace), str(plan), str(folder / "swept")]
    ended = run_python(words, folder)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.fixture
def own_session(done: dict[str, Any]) -> dict[str, Any]:
    """What the program found."""
    found: dict[str, Any] = done["own"]
    return found


@pytest.mark.xdist_group("servers")
def test_the_command_judges_on_a_cluster(done: dict[str, Any]) -> None:
    verified = done["verify"]
    assert verified["code"] == 1, verified["stderr"]
    one, two = json.loads(verified["stdout"])["runs"]
    assert one["verdicts"]["fifo.global"] == "ok"
    assert two["verdicts"]["fifo.global"] == "violated"
    [violation] = [v for v in two["violations"] if v["property"] == "fifo.global"]
    assert "q delivers message-7999 before message-7998" in violation["sentence"]


@pytest.mark.xdist_group("servers")
def test_a_sweep_on_a_cluster_makes_the_same_table(done: dict[str, Any], folder: Path) -> None:
    assert done["sweep"]["code"] == 0, done["sweep"]["stderr"]
    assert "24 runs: 24 kept; ran 24" in done["sweep"]["stdout"]
    expected = swept_here(read_plan(folder / "sweep" / "plan.toml"), folder / "here")
    assert (folder / "swept" / "runs.parquet").read_bytes() == expected


@pytest.mark.xdist_group("servers")
def test_the_workers_know_the_package_only_because_it_is_sent(own_session: dict[str, Any]) -> None:
    assert "ModuleNotFoundError: No module named 'ordercast'" in own_session["before"]
    assert sorted(own_session["verdicts"]) == ["ok", "violated"]


@pytest.mark.xdist_group("servers")
def test_the_settings_of_the_owner_of_the_cluster_hold(own_session: dict[str, Any]) -> None:
    conf = own_session["conf"]
    assert conf["spark.executor.memory"] == "600m"
    assert conf["spark.sql.session.timeZone"] == "Europe/Berlin"  # before what we would choose
    assert conf["spark.ui.enabled"] == "false"  # where the owner says nothing
    assert conf["spark.sql.shuffle.partitions"] == "3"  # what the caller says is stronger


@pytest.mark.xdist_group("servers")
def test_a_cluster_that_has_no_room_is_told_after_a_while(own_session: dict[str, Any]) -> None:
    [told] = own_session["nobody"]
    assert "no worker of the cluster took a task within 3 s" in told
    assert "spark.executor.memory=900g" in told


def test_a_master_that_is_not_there_is_told_before_spark_starts(folder: Path, trace: Path) -> None:
    master = f"spark://127.0.0.1:{free_port()}"
    done = ordercast(folder, "verify", trace, "--master", master)
    assert done.returncode == 4
    assert f"no Spark master answers at {master}" in done.stderr
    assert "Connection refused" in done.stderr


@pytest.mark.parametrize("master", ["spark://", "spark://:7077", "spark://host:x", "spark://h:0"])
def test_what_is_no_address_of_a_master_is_refused(master: str) -> None:
    with pytest.raises(ValueError, match="is no Spark master; for example spark://host:7077"):
        own_address(master)


def test_one_of_several_masters_suffices() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = own_address(f"spark://127.0.0.1:{free_port()},127.0.0.1:{port}")
    assert found == "127.0.0.1"


def test_the_driver_is_where_executors_can_call_it_unless_the_caller_says() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        assert cluster_defaults(master, {})["spark.driver.host"] == "127.0.0.1"
        said = cluster_defaults(master, {"SPARK_LOCAL_IP": "192.0.2.7"})
    assert "spark.driver.host" not in said
    assert "spark.driver.host" not in cluster_defaults("yarn", {})


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local-cluster[2,1,512]", False), ("yarn", False)],
)
def test_only_a_local_master_needs_nothing_sent(master: str, local: bool) -> None:
    assert is_local(master) is local


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("ModuleNotFoundError: No module named 'numba.core'", ConfigError, "no package numba;"),
        (
            "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; however, it was not",
            ConfigError,
            "no package PyArrow;",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in "
            "driver: 3.11, PySpark cannot run with different minor versions.",
            ConfigError,
            "the workers run Python 3.12 and this is Python 3.11",
        ),
        ('Cannot run program "python9": error=2', ConfigError, "cannot run python9"),
        ("java.lang.OutOfMemoryError: Java heap space", ConfigError, "spark.executor.memory"),
        ("Job 1 cancelled because SparkContext was shut down", ConnectionError, "ended"),
        (
            "SparkException: Python worker exited unexpectedly (crashed). Consider setting",
            ConnectionError,
            "worker of Spark was killed",
        ),
        (
            "Lost task 0.0 in stage 0.0 (TID 0) (localhost executor driver): java.io.IOException: "
            "Broken pipe\n\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)\n"
            "\tat org.apache.spark.api.python.PythonWorkerFactory.createWorker$1(P.scala:220)",
            ConnectionError,
            "worker of Spark was killed",
        ),
        (
            "Lost task 0.0 in stage 0.0 (TID 0) (localhost executor driver): java.io.EOFException\n"
            "\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)\n"
            "\tat org.apache.spark.api.python.PythonWorkerFactory.create(P.scala:177)",
            ConnectionError,
            "worker of Spark was killed",
        ),
    ],
)
def test_what_goes_wrong_on_workers_is_told_in_a_sentence(
    text: str, kind: type[Exception], told: str
) -> None:
    error = explained(f"Traceback (most recent call last):\n  {text}\n\tat java.lang.Thread")
    assert isinstance(error, kind)
    assert told in str(error)


def test_a_file_that_a_worker_does_not_see_is_refused_with_the_name_of_the_worker() -> None:
    with pytest.raises(TraceError) as caught:
        check_files_visible([__file__, "/not/here/trace.csv"])
    assert str(caught.value).startswith(
        f"/not/here/trace.csv: not visible on the Spark worker {socket.gethostname()}"
    )


def test_a_segment_that_was_sealed_meanwhile_is_visible(tmp_path: Path) -> None:
    segment = tmp_path / "p-00001.seg"
    sealed_path(segment).touch()
    check_files_visible([segment])


def test_what_we_have_no_sentence_for_is_left_as_it_is() -> None:
    assert explained("ZeroDivisionError: division by zero") is None
    assert explained("ModuleNotFoundError: No module named 'ordercast.pipeline'") is None
    assert explained("Lost task 0.0 in stage 0.0: java.io.EOFException\n\tat a.B.read(B)") is None


def test_settings_are_read_as_key_and_value_and_the_last_one_counts() -> None:
    given = ["spark.a=1", "spark.b=x=y", "spark.a=2"]
    assert spark_settings(given) == {"spark.a": "2", "spark.b": "x=y"}


@pytest.mark.parametrize("conf", ["spark.a", "=1", ""])
def test_what_is_no_setting_is_refused(conf: str) -> None:
    with pytest.raises(ValueError, match="not key=value"):
        spark_settings([conf])


def test_the_zip_holds_the_package_and_is_the_same_each_time() -> None:
    first, second = package_zip(), package_zip()
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert {"ordercast/__init__.py", "ordercast/pipeline/spark/log4j2.properties"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.startswith("/")]
