"""A running watch: start it, ask how it stands, end it between two batches."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from ordercast.judge.expectations import INCONCLUSIVE, OK, VIOLATED
from ordercast.pipeline.streaming.journal import Journal, JournalEntry, Status
from ordercast.pipeline.streaming.query import WatchOptions, start_watch
from ordercast.pipeline.streaming.sources.places import CHANGED, Place, advance

CHECKPOINT = "_ordercast_watch"  # below the watched folder; names with "_" are no traces
STOP_SECONDS = 20.0  # how long an ending watch waits for the batch in hand
_TRACE_ERROR = re.compile(r"TraceError: (.+)")


class Watcher:
    """Watches one folder on a session that the caller owns."""

    def __init__(
        self, spark: SparkSession, folder: Path, checkpoint: Path, options: WatchOptions
    ) -> None:
        self.folder = folder
        self.journal = Journal(checkpoint)
        self.query = start_watch(spark, folder, checkpoint, options)

    def news(self) -> Iterator[JournalEntry]:
        """Notices that were not shown yet, also by a watch before this one; then they are."""
        shown = self.journal.shown()
        latest = shown
        for told in self.journal.read(after=shown):
            yield told
            latest = told.batch
        if latest > shown:
            self.journal.mark_shown(latest)

    def status(self) -> Status:
        return self.journal.status()

    def check(self) -> None:
        """Raise what ended the query, if something did."""
        error = self.query.exception()
        if error is None:
            return
        found = _TRACE_ERROR.search(str(error))
        if found is not None:
            # It says file, line and reason; Spark kept only the text.
            raise ValueError(f"{found[1]}; {self._way_on(found[1])}")
        raise RuntimeError(f"the streaming query failed: {error}")

    def _way_on(self, fault: str) -> str:
        """The rows of a batch were noted before it ran, so the same rows are read again."""
        anew = f"name another --checkpoint (or delete {self.journal.folder}) to judge"
        if CHANGED in fault or fault.startswith("the checkpoint"):  # there is nothing to mend
            return f"{anew} it anew"
        return f"once that is mended, {anew} all of it anew"

    def has_begun(self) -> bool:
        """Spark has started so far that it has looked into the folder."""
        return str(self.query.status["message"]).startswith("Waiting")

    def has_caught_up(self) -> bool:
        """Everything in the folder was judged, and time alone will bring nothing new."""
        progress = self.query.lastProgress
        if progress is None or not progress["sources"]:
            return False
        place = msgspec.json.decode(progress["sources"][0]["endOffset"] or "{}", type=Place)
        rest = advance(self.folder, place, now=float("inf"), most_rows=1)
        return rest == place and all(run.idle for run in self.status().runs.values())

    def stop(self) -> None:
        """End between two batches if that is soon."""
        deadline = time.monotonic() + STOP_SECONDS
        while self.query.isActive and self.query.status["isTriggerActive"]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        self.query.stop()


def exit_code(status: Status) -> int:
    """0: nothing stands against what is expected; 1: something does; 3: that cannot be said."""
    runs = status.runs.values()
    if any(run.violated for run in runs):
        return VIOLATED
    open_ends = any(run.overdue or run.doubts or run.waiting_rows for run in runs)
    return INCONCLUSIVE if open_ends or not runs else OK
