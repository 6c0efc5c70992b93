"""What came out of a run: why it ended, figures, the trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.simulation.engine import EndReason
from ordercast.simulation.log import Declared, TraceLog, declared_events, logged_events
from ordercast.simulation.performance import Performance, performance_of
from ordercast.simulation.processors import Processors
from ordercast.trace.schema import Event
from ordercast.trace.write import write_csv, write_jsonl, write_parquet


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one run."""

    events: int  # handed to machines: packets, timers, multicasts, consumptions, views
    simulated_ms: float  # when the last of them was
    multicasts: int
    deliveries: int
    unsent: int  # messages nobody could send: no view, no room, or the process had crashed
    packets: int  # one per receiver, or one for all on a broadcast network; lost ones included
    packets_of: dict[str, int]  # ... by the name of the header, of what links carry by theirs
    payload_bytes: int  # in them
    most_bytes_sent: int  # ... of them, by one process
    lost: int  # by the network, or with the process that sent them
    cut: int  # by a partition
    duplicates: int  # second copies
    missed: int  # arrived at a crashed process
    timers: int  # that fired
    consumptions: int
    retransmissions: int  # as machines noted them
    held_back: int  # messages that waited for another, by links or protocol
    most_held_back: int  # ... that one arrival released
    faults: int  # packets by which a peer broke the protocol: 0, or a machine is wrong

    @property
    def packets_per_message(self) -> float:
        """Of all kinds, data and control."""
        return self.packets / max(1, self.multicasts)


class Outcome:
    """A run that is over."""

    def __init__(
        self,
        run: str,
        ended: EndReason,
        statistics: Statistics,
        groups: tuple[Declared, ...],
        log: TraceLog,
        first_faults: tuple[tuple[ProcessId, ProcessId, str], ...],
        processors: Processors | None = None,
    ) -> None:
        self.run = run
        self.ended = ended  # "quiescent", or the limit that stopped it
        self.statistics = statistics
        self.groups = groups
        self.log = log
        self.first_faults = first_faults  # (process, the peer it blames, what), the first 100
        self.processors = processors  # None: work took no time

    @property
    def quiescent(self) -> bool:
        """Nothing was under way and no timer running: all logs are complete."""
        return self.ended == "quiescent"

    def performance(self) -> Performance:
        """Throughput, delays, and how busy each process was."""
        return performance_of(self.log, self.groups, self.processors)

    def events(self) -> list[Event]:
        """The trace."""
        return [*declared_events(self.run, self.groups), *logged_events(self.run, self.log)]

    def write(self, path: str | Path) -> list[Path]:
        """Write the trace to FILE.jsonl, .csv or .parquet, or into a folder; return the files.

        A folder gets `run=<run>/events.parquet`. Parquet needs pyarrow.
        """
        path = Path(path)
        if path.is_dir() or not path.suffix:
            return write_parquet(self.events(), path)
        if path.suffix not in WRITERS:
            raise ValueError(
                f"{path}: a trace is written to FILE{', FILE'.join(WRITERS)}, or into a folder "
                "(a path without suffix) as Parquet"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[path.suffix](self.events(), path)
        return [path]


def _write_one_parquet(events: list[Event], path: Path) -> None:
    from ordercast.trace.tables import event_table, write_table  # needs pyarrow

    write_table(event_table(events), path)


WRITERS: dict[str, Callable[[list[Event], Path], None]] = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".parquet": _write_one_parquet,
}
