"""Several runs side by side: the same workload, another protocol, what did it cost?

Each path is read by itself, so two runs may have the same name. All are judged and measured at
once. A comparison of different workloads says little, so differences are told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.errors import TraceError
from ordercast.judge.comparison import Comparison, compared
from ordercast.judge.files import find_files, total_bytes
from ordercast.pipeline.read import read_traces
from ordercast.pipeline.spark.session import local_session
from ordercast.pipeline.verdict import LARGE_BYTES, Say, judge_events

MOST_RUNS = 64  # side by side; more is a table for a notebook: `measure`
_MARK = "\x1f"  # between the number of a path and the name of a run


def compare_paths(
    paths: Sequence[str | Path],
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    say: Say = lambda step: None,
) -> Comparison:
    """Compare the runs in `paths` on a session of our own; `say` is told each step.

    A folder that only has folders in it, none of them a run, stands for those.
    """
    places = [place for path in paths for place in _places(Path(path))]
    small = total_bytes(find_files(places)) <= LARGE_BYTES
    say("starting Spark")
    spark = local_session(master or "local[*]", small=small, conf=conf)
    say("reading")
    outcome = judge_events(_side_by_side(spark, places), say=say)
    _check_number(len(outcome.runs), paths)
    numbered = sorted((int(one.run.partition(_MARK)[0]), one.run, one) for one in outcome.runs)
    return compared(
        [(str(places[n]), one.renamed(run.partition(_MARK)[2])) for n, run, one in numbered]
    )


def _places(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = sorted(one for one in path.iterdir() if one.name[0] not in "._")
    folders = [one for one in inside if one.is_dir()]
    if len(folders) < len(inside) or any(one.name.startswith("run=") for one in folders):
        return [path]
    return folders or [path]


def _side_by_side(spark: SparkSession, places: Sequence[Path]) -> DataFrame:
    parts = [
        read_traces(spark, [place]).withColumn(
            "run", sf.concat(sf.lit(f"{number}{_MARK}"), sf.col("run"))
        )
        for number, place in enumerate(places)
    ]
    return reduce(DataFrame.unionByName, parts)


def _check_number(runs: int, paths: Sequence[str | Path]) -> None:
    where = ", ".join(map(str, paths))
    if runs < 2:
        reason = f"{runs or 'no'} run{'s' if not runs else ''} there; a comparison needs two"
        raise TraceError(where, None, None, reason)
    if runs > MOST_RUNS:
        reason = f"{runs} runs there; at most {MOST_RUNS} are put side by side"
        raise TraceError(where, None, None, reason)
