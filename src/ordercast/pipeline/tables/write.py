"""Write the tables of new and changed runs; leave those of all others alone.

    recorded -> clean -> deliveries, metrics, figures
                      -> verdicts -> violations

Every table is made from the one before, so a source file that grows meanwhile changes nothing. The
manifest is written last: a run that was interrupted is not in it, and is done again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.errors import ConfigError
from ordercast.judge.files import find_files
from ordercast.judge.run_files import runs_of_files
from ordercast.pipeline.measure import deliveries, measure
from ordercast.pipeline.measure.whole import measured
from ordercast.pipeline.tables.clean import clean
from ordercast.pipeline.tables.files import (
    append,
    check_names,
    read_runs,
    remove_runs,
    run_files,
    whole_runs,
)
from ordercast.pipeline.tables.judge_version import judge_version
from ordercast.pipeline.tables.manifest import JudgedRun, load_manifest, save_manifest, writing
from ordercast.pipeline.tables.plan import plan_runs
from ordercast.pipeline.tables.schema import SCHEMA_VERSION, TABLES
from ordercast.pipeline.tables.sources import Sources
from ordercast.pipeline.verdict import Say
from ordercast.pipeline.verify import verify_runs
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.reading import Note, log_note

RUNS_EACH = 2000  # runs that are written together: what an interruption can cost


@dataclass(frozen=True)
class Summary:
    """What was done for the runs in the files that were named."""

    judged: tuple[str, ...]
    kept: tuple[str, ...]  # their tables are up to date
    replaced: tuple[str, ...] = ()  # those of `judged` that had tables before

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(sorted((*self.judged, *self.kept)))

    def __str__(self) -> str:
        new = len(self.judged) - len(self.replaced)
        anew = f" and {_runs(len(self.replaced), ' changed')}" if self.replaced else ""
        return f"judged {_runs(new, ' new')}{anew}, kept {len(self.kept)}"


def write_tables(
    spark: SparkSession,
    paths: Sequence[str | Path],
    folder: str | Path,
    *,
    quiescent: bool = False,
    mapping: LogMapping | None = None,
    say: Say = lambda step: None,
    note: Note = log_note,
) -> Summary:
    """Bring the tables in `folder` up to date with the traces in `paths`.

    A run is judged if it is new, or if its files, the options, the mapping or the code that
    judges are not those that its tables were made with. Runs that are in no file of `paths`
    stay as they are.

    Raises `TraceError` for input that cannot be read, before any table is touched, and
    `UsageError` if somebody else is writing there.
    """
    folder = Path(folder).absolute()
    files = find_files(paths, mapping)
    _refuse_own(files, folder)
    made = JudgedRun("", SCHEMA_VERSION, judge_version(), quiescent)
    with writing(folder):
        say("looking for new runs")
        sources = Sources(spark, files, mapping, note=note)
        manifest = load_manifest(folder)
        manifest = manifest.without_runs(manifest.runs.keys() - whole_runs(folder))
        seen = sources.with_runs(manifest)
        manifest = manifest.with_files(seen)
        plan = plan_runs(seen, manifest, made)
        check_names(plan.judge)
        for runs in _batches(list(plan.judge)):
            manifest = manifest.without_runs(runs)
            save_manifest(folder, manifest)
            remove_runs(folder, runs)
            own = {path for run in runs for path in plan.files[run]}
            _Writer(spark, folder, runs, say).write(sources.recorded(own, runs), quiescent)
            manifest = manifest.with_runs({run: plan.judge[run] for run in runs})
            save_manifest(folder, manifest)
    return Summary(tuple(plan.judge), plan.kept, plan.replaced)


class _Writer:
    """Writes all tables of some runs, one after the other."""

    def __init__(self, spark: SparkSession, folder: Path, runs: Collection[str], say: Say) -> None:
        self.spark = spark
        self.folder = folder
        self.runs = runs
        self.say = say

    def write(self, recorded: DataFrame, quiescent: bool) -> None:
        self._append("recorded", recorded)
        self._append("clean", clean(self._read("recorded")))
        self._append("verdicts", self._verdicts(quiescent))
        self._append("violations", _violations(self._read("verdicts")))
        events = self._read("clean")
        self._append("deliveries", deliveries(events))
        self._append("metrics", measure(events))
        self._append("figures", self._figures(events))

    def _append(self, name: str, rows: DataFrame) -> None:
        self.say(f"writing {name} of {_runs(len(self.runs))}")
        append(rows, self.folder, TABLES[name])

    def _read(self, name: str) -> DataFrame:
        return read_runs(self.spark, self.folder, TABLES[name], self.runs)

    def _verdicts(self, quiescent: bool) -> DataFrame:
        self.say(f"verifying {_runs(len(self.runs))}")
        runs = runs_of_files(run_files(self.folder, "clean", self.runs))
        assert runs is not None  # a folder holds one run
        verdicts = verify_runs(self.spark, runs, quiescent=quiescent)
        return verdicts.withColumns(
            {
                "quiescent": sf.lit(quiescent),
                "judge": sf.lit(judge_version()),
                "judged": sf.lit(datetime.now(UTC)),
            }
        )

    def _figures(self, events: DataFrame) -> DataFrame:
        told = {run: msgspec.json.encode(one).decode() for run, one in measured(events).items()}
        columns = {"run": list(told), "figures": list(told.values())}
        schema = pa.schema([("run", pa.string()), ("figures", pa.string())])
        return self.spark.createDataFrame(pa.table(columns, schema=schema)).coalesce(1)


def _violations(verdicts: DataFrame) -> DataFrame:
    found = verdicts.select("run", "promise", "property", sf.explode("evidence").alias("one"))
    return found.select("run", "promise", "property", "one.sentence", "one.witness")


def _refuse_own(files: Iterable[Path], folder: Path) -> None:
    for file in files:
        if folder.resolve() in file.resolve().parents:
            raise ConfigError(
                f"{file} lies in the folder of the tables, {folder}: they would be made from "
                "themselves; put the tables beside the traces, not among them"
            )


def _batches(runs: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(runs), RUNS_EACH):
        yield runs[start : start + RUNS_EACH]


def _runs(count: int, word: str = "") -> str:
    return f"{count}{word} run" if count == 1 else f"{count}{word} runs"
