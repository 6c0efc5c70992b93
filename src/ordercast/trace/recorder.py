"""The recorder: what one process did, written down while it does it.

The runtime and the simulator call it once per *frame* (a run of consecutive messages), at the
place where the application calls and is handed messages. A call packs one fixed-size record
into a preallocated buffer and does nothing else.

When records reach the disk. `flush()` hands the buffer to the operating system with one write;
what was handed over survives `kill -9` of this process. Call it after `send()`, *before* the
frame goes to a socket: then no process can have received a message whose send is not recorded.
A full buffer (`buffer_bytes`) flushes itself, so memory is bounded whether or not anybody calls
`flush()`. There is no fsync: a power cut may cut more.

When the disk fails. Nothing is raised into the messaging path. The records in the buffer are
dropped and counted; the next write that succeeds begins with a `lost` record in their place. The
log of the program is told once when it begins and once when it is over; `stats()` shows it all the
time.

Segments are rotated by age and size, at a flush. They are sealed to Parquet by `seal()`, after
`finish()`, or by `seal_directory` from another process; never while messages flow. `close()` does
both. What is not sealed in time stays a segment, and is readable.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ordercast.errors import UsageError
from ordercast.trace.layout import run_folder, sealed_path, segment_path
from ordercast.trace.schema import STATISTICAL_KINDS
from ordercast.trace.seal import Unsealed, seal_segments
from ordercast.trace.segments import (
    FINISHED,
    KIND_CODES,
    NONE,
    RECORD,
    Declaration,
    Head,
    encode_block,
    encode_head,
)

_GROUP, _SEND, _DELIVER, _VIEW = (KIND_CODES[k] for k in ("group", "send", "deliver", "view"))
_JOIN, _LEAVE, _CRASH = (KIND_CODES[k] for k in ("join", "leave", "crash"))
_END, _LOST = (KIND_CODES[k] for k in ("end", "lost"))
_RECORD_BYTES = RECORD.size
_pack = RECORD.pack_into

log = logging.getLogger("ordercast.trace.recorder")

TELL_AGAIN_NS = 60 * 1_000_000_000  # a disk that fails now and then is told of so often at most


class Recorder:
    """Appends the log of one process to segment files. Not for use from several threads."""

    def __init__(
        self,
        directory: Path,
        *,
        run: str,
        process: str,
        segment_seconds: float = 1.0,
        segment_bytes: int = 4 * 1024 * 1024,
        buffer_bytes: int = 64 * 1024,
        seal: bool = True,
        seal_seconds: float = 2.0,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Start the log of `process` (with incarnation, "alice#2") under `directory`.

        The log must be new: `UsageError` if this run has one of that process already.
        """
        if not run or not process:
            raise ValueError("a recorder needs a run and a process, both not empty")
        self._folder = run_folder(Path(directory), run)
        first = segment_path(self._folder, process, 1)
        if first.exists() or sealed_path(first).exists():
            raise UsageError(
                f"{self._folder} has a log of {process!r} already: "
                "take another run name, another incarnation or another directory"
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        self._run = run
        self._process = process
        self._segment_ns = segment_seconds * 1e9
        self._segment_limit = segment_bytes
        self._seal = seal
        self._seal_seconds = seal_seconds
        self._clock_ns = clock_ns

        self._capacity = max(2, buffer_bytes // _RECORD_BYTES) * _RECORD_BYTES
        self._buffer = bytearray(self._capacity)
        self._used = 0  # bytes of the buffer that are records
        self._full = self._capacity  # at this fill the next call flushes first; 0 = at once
        self._index = 1  # of the next row of this log
        self._views: dict[str, int] = {}  # current view per group

        self._segment = 1  # number of the segment being written
        self._file: int | None = None  # its descriptor, while it is open
        self._written = 0  # its bytes so far
        self._started_ns = 0  # when its first block was written
        self._names: dict[str, int] = {}  # numbers of the names defined in it
        self._groups: dict[str, tuple[int, int]] = {}  # per group: its name's number, its view
        self._new_names: list[str] = []  # defined since the last flush ...
        self._new_names_bytes = 0  # ... and their size
        self._missing = 0  # records dropped since the last successful write
        self._trouble = ""  # why nothing can be written now
        self._told_ns: int | None = None  # when the log of the program heard of that last
        self._is_told = False  # ... and whether it must hear of the end of it

        self._records_total = 0
        self._bytes_total = 0
        self._lost_total = 0
        self._broken = False  # a torn block could not be removed: nothing may follow it
        self._closed = False

    def send(self, group: str, first: int, count: int, size: int, now_ns: int) -> None:
        """This process multicast messages first..first+count-1 of its own, `size` bytes in all."""
        if self._used >= self._full:
            self._make_room()
        number, view = self._groups.get(group) or self._enter(group)
        at = self._used
        _pack(
            self._buffer, at, _SEND, number, 0, 0, count, size, 0,
            first, self._index, now_ns, NONE, view,
        )  # fmt: skip
        self._index += count
        self._used = at + _RECORD_BYTES

    def deliver(
        self, group: str, sender: str, first: int, count: int, seq: int, overhead: int, now_ns: int
    ) -> None:
        """Messages first..first+count-1 of `sender` were handed to the application.

        `seq` is the sequencer's number of the frame (-1: none), `overhead` the header bytes of the
        packet that brought it (0: none did, or that is not known).
        """
        if self._used >= self._full:
            self._make_room()
        number, view = self._groups.get(group) or self._enter(group)
        sender_number = self._names.get(sender) or self._define(sender)
        at = self._used
        _pack(
            self._buffer, at, _DELIVER, number, sender_number, 0, count, 0, overhead,
            first, self._index, now_ns, seq, view,
        )  # fmt: skip
        self._index += count
        self._used = at + _RECORD_BYTES

    def group(
        self,
        group: str,
        members: Sequence[str],
        *,
        order: str | None,
        protocol: str | None,
        scope: str | None,
    ) -> None:
        """Declare a group: who is in it from the start, and what was promised, if anything."""
        text = msgspec.json.encode(Declaration(tuple(members), order, protocol, scope)).decode()
        self._append(_GROUP, group, text=text, rows=0)

    def join(self, group: str) -> None:
        """This process became a member."""
        self._append(_JOIN, group)

    def leave(self, group: str) -> None:
        """This process stopped being a member."""
        self._append(_LEAVE, group)
        self._views.pop(group, None)
        self._groups.pop(group, None)

    def view(self, group: str, number: int, members: Sequence[str]) -> None:
        """This process installed view `number`; later records of the group carry that number."""
        self._views[group] = number
        self._groups.pop(group, None)
        self._append(_VIEW, group, text=msgspec.json.encode(list(members)).decode())

    def protocol_event(
        self,
        kind: str,
        group: str,
        sender: str,
        first: int,
        count: int,
        note: str = "",
        overhead: int = 0,
    ) -> None:
        """Something below the application, for statistics: receive, hold, retransmit, nack, ...

        With `count` 0 it is about no message in particular. `overhead` is the header bytes of a
        packet (0: not known).
        """
        assert kind in STATISTICAL_KINDS, kind
        self._append(
            KIND_CODES[kind], group, sender, text=note, first=first, count=count,
            rows=max(count, 1), overhead=overhead,
        )  # fmt: skip

    def crash_of(self, process: str) -> None:
        """This process saw `process` die. A reader makes it the last event of *that* log.

        Nothing comes of it if that log has an `end` of its own (see `read.settle_crashes`).
        """
        self._append(_CRASH, "", process, rows=0)

    def lost(self, count: int) -> None:
        """`count` records are missing here: dropped before they reached this recorder."""
        self._append(_LOST, "", first=count)
        self._lost_total += count

    def end(self) -> None:
        """The log is complete: idle and drained, nothing more would have been delivered."""
        self._append(_END, "")

    def flush(self) -> None:
        """Hand all records to the operating system, and rotate the segment if it is due."""
        if not self._used or self._closed:
            return
        now_ns = self._clock_ns()
        if self._write(encode_block(memoryview(self._buffer)[: self._used], self._new_names)):
            self._tell_recovery()
            self._started_ns = self._started_ns or now_ns
            self._records_total += self._used // _RECORD_BYTES
            self._used = 0
            self._missing = 0
            self._new_names.clear()
            self._rotate_if_due(now_ns)
        else:
            self._drop(now_ns)
        self._new_names_bytes = 0
        self._full = self._capacity

    def close(self) -> None:
        """Finish and seal."""
        if not self._closed:
            self.finish()
            self.seal(self._seal_seconds)

    def finish(self) -> None:
        """Keep what was recorded and stop. It may be sealed in another thread then."""
        if self._closed:
            return
        self.flush()
        if self._written:
            self._write(FINISHED)
        self._close_file()
        self._closed = True
        self._full = 0  # every later call takes the slow path, which only counts it
        if self._missing:
            log.warning(
                "the trace of %s ends early: its last %d records could not be written (%s)",
                self._process, self._missing, self._trouble,
            )  # fmt: skip

    def seal(self, seconds: float) -> None:
        """After `finish`, and if it was asked for: seal what can be sealed, say what is left."""
        if not self._seal or self._broken:
            return
        paths = [self._path(number) for number in range(1, self._segment + 1)]
        self.say_unsealed(seal_segments(paths, seconds=min(seconds, self._seal_seconds)))

    def say_unsealed(self, unsealed: Unsealed | None) -> None:
        """The segments that are left can be read as they are."""
        if unsealed is not None:
            log.warning(
                "the trace of %s has segments that are not sealed: %d (%s). They can be read as "
                "they are, and `python -m ordercast.trace.seal --tails %s` seals them",
                self._process, unsealed.segments, unsealed.reason, self._folder,
            )  # fmt: skip

    def abort(self) -> None:
        """Keep what was recorded and stop, as a crash would: no `end`, nothing sealed."""
        self.finish()

    def stats(self) -> dict[str, int | str]:
        """Counts so far, how full the buffer is of how much, and why nothing can be written."""
        return {
            "records": self._records_total + self._used // _RECORD_BYTES,
            "bytes": self._bytes_total,
            "segments": self._segment - (self._written == 0),
            "lost": self._lost_total,
            "failing": self._trouble,
            "buffered": self._used,
            "buffered_limit": self._capacity,
        }

    def _append(
        self,
        kind: int,
        group: str,
        sender: str = "",
        *,
        text: str = "",
        first: int = 0,
        count: int = 1,
        overhead: int = 0,
        rows: int = 1,
    ) -> None:
        """Any record but the two frequent ones; it takes `rows` indexes of this log."""
        if self._used >= self._full:
            self._make_room()
        number, view = (self._groups.get(group) or self._enter(group)) if group else (0, NONE)
        sender_number = (self._names.get(sender) or self._define(sender)) if sender else 0
        text_number = (self._names.get(text) or self._define(text)) if text else 0
        _pack(
            self._buffer, self._used, kind, number, sender_number, text_number, count, 0, overhead,
            first, self._index, self._clock_ns(), NONE, view,
        )  # fmt: skip
        self._index += rows
        self._used += _RECORD_BYTES

    def _enter(self, group: str) -> tuple[int, int]:
        """Number and view of a group at its first use in this segment or view."""
        number = self._names.get(group) or self._define(group)
        entry = self._groups[group] = (number, self._views.get(group, NONE))
        return entry

    def _define(self, name: str) -> int:
        """Give `name` a number in this segment."""
        number = self._names[name] = len(self._names) + 1
        self._new_names.append(name.encode("utf-8", "replace").decode())
        self._new_names_bytes += len(name)
        if self._new_names_bytes > self._capacity:
            self._full = 0
        return number

    def _make_room(self) -> None:
        """The buffer is full: write it out. Once closed, there is nowhere to write to."""
        if self._closed:
            self._lost_total += 1
            self._used = 0
            self._forget_names(0)
        else:
            self.flush()

    def _tell_failure(self, now_ns: int) -> None:
        """Once for each time that the disk fails, and not more often than now and then."""
        is_due = self._told_ns is None or now_ns - self._told_ns >= TELL_AGAIN_NS
        if self._is_told or not is_due:
            return
        self._is_told, self._told_ns = True, now_ns
        log.warning(
            "the trace of %s cannot be written (%s): messages go on, and records are missing "
            "until %s can be written again",
            self._process, self._trouble, self._folder,
        )  # fmt: skip

    def _tell_recovery(self) -> None:
        self._trouble = ""
        if self._is_told:
            self._is_told = False
            log.warning(
                "the trace of %s is written again: %d records are missing",
                self._process, self._missing,
            )  # fmt: skip

    def _drop(self, now_ns: int) -> None:
        """Writing failed: the buffer now holds only the note that its records are missing."""
        self._tell_failure(now_ns)
        dropped = self._used // _RECORD_BYTES - (self._missing > 0)
        self._missing += dropped
        self._lost_total += dropped
        self._forget_names(len(self._names) - len(self._new_names))
        _pack(
            self._buffer, 0, _LOST, 0, 0, 0, 1, 0, 0, self._missing, self._index, now_ns, NONE, NONE
        )
        self._index += 1
        self._used = _RECORD_BYTES

    def _forget_names(self, known: int) -> None:
        """Names beyond the first `known` never reached the segment."""
        self._names = {name: number for name, number in self._names.items() if number <= known}
        self._new_names.clear()
        self._groups.clear()

    def _rotate_if_due(self, now_ns: int) -> None:
        young = now_ns - self._started_ns < self._segment_ns
        if (young and self._written < self._segment_limit) or not self._write(FINISHED):
            return  # a segment that cannot be finished is not left: it grows
        self._close_file()
        self._segment += 1
        self._written = 0
        self._started_ns = 0
        self._forget_names(0)

    def _path(self, number: int) -> Path:
        return segment_path(self._folder, self._process, number)

    def _write(self, block: bytes) -> bool:
        """Append to the segment file, all or nothing. False if that failed."""
        if self._broken:
            return False
        if not self._written:
            block = encode_head(Head(self._run, self._process, self._segment)) + block
        done = 0
        try:
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._file = os.open(self._path(self._segment), flags, 0o644)
            while done < len(block):
                done += os.write(self._file, block[done:] if done else block)
        except OSError as error:
            self._trouble = error.strerror or str(error)
            self._undo(done)
            self._close_file()
            return False
        self._written += len(block)
        self._bytes_total += len(block)
        return True

    def _undo(self, done: int) -> None:
        """Remove the first part of a block that did not fit."""
        if not done:
            return
        assert self._file is not None
        try:
            os.ftruncate(self._file, self._written)
        except OSError:
            self._broken = True

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # some file systems report a full disk only here
                os.close(self._file)
            self._file = None
