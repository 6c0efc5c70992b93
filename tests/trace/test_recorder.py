"""The recorder: every call is read back as the events it stands for, whatever happens."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import UsageError
from ordercast.trace.read import read_events, read_table
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import STATISTICAL_KINDS, Event
from ordercast.trace.seal import seal_directory
from ordercast.trace.tables import table_events


class Clock:
    """Time that stands still until it is told to move."""

    def __init__(self) -> None:
        self.now_ns = 1_000

    def __call__(self) -> int:
        return self.now_ns


def recorder(directory: Path, process: str = "alice#1", **options: Any) -> Recorder:
    options = {"seal": False, "clock_ns": Clock(), **options}
    return Recorder(directory, run="r", process=process, **options)


def messages(events: list[Event], kind: str) -> list[str | None]:
    return [event.message for event in events if event.kind == kind]


def segments_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*.seg"))


def by_log(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda e: (e.process or "", e.index or 0, e.group or ""))


def test_a_frame_becomes_one_event_per_message(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    log.group("prices", ["alice#1", "bob#1"], order="total", protocol="fifo", scope="group")
    log.view("prices", 4, ["alice#1", "bob#1"])
    log.send("prices", 1, 2, 11, 2_000)
    log.deliver("prices", "bob#1", 7, 3, 99, 40, 3_000)
    log.deliver("prices", "bob#1", 10, 1, -1, 0, 4_000)
    log.end()
    log.close()

    def own(index: int, kind: str, **columns: Any) -> Event:
        return Event("alice#1", index, kind, run="r", **columns)

    same = {"group": "prices", "view": 4}
    theirs = {"sender": "bob#1", **same}
    assert read_events(tmp_path / "run=r") == [
        Event(
            None, None, "group", None, "prices", "r", members=("alice#1", "bob#1"), time=1_000,
            order="total", protocol="fifo", scope="group",
        ),
        own(1, "view", members=("alice#1", "bob#1"), time=1_000, **same),
        own(2, "send", message="alice#1/prices/1", size=6, time=2_000, **same),
        own(3, "send", message="alice#1/prices/2", size=5, time=2_000, **same),
        own(4, "deliver", message="bob#1/prices/7", seq=99, overhead=14, time=3_000, **theirs),
        own(5, "deliver", message="bob#1/prices/8", seq=99, overhead=13, time=3_000, **theirs),
        own(6, "deliver", message="bob#1/prices/9", seq=99, overhead=13, time=3_000, **theirs),
        own(7, "deliver", message="bob#1/prices/10", time=4_000, **theirs),
        own(8, "end", time=1_000),
    ]  # fmt: skip


def test_a_group_may_promise_nothing(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    log.group("g", ["alice#1"], order="total", protocol="fifo", scope="domain")
    log.group("h", [], order=None, protocol="fifo", scope=None)
    log.close()
    declared = {"process": None, "index": None, "kind": "group", "run": "r", "time": 1_000}
    expected = [
        Event(**declared, group="g", members=("alice#1",), order="total", protocol="fifo",
              scope="domain"),
        Event(**declared, group="h", members=(), protocol="fifo"),
    ]  # fmt: skip
    assert read_events(tmp_path) == expected
    assert table_events(read_table(tmp_path)) == expected


def test_records_after_leave_carry_no_view(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    log.view("g", 1, ["alice#1"])
    log.leave("g")
    log.send("g", 1, 1, 0, 0)
    log.close()
    assert [(event.kind, event.view) for event in read_events(tmp_path)] == [
        ("view", 1),
        ("leave", 1),
        ("send", None),
    ]


names = st.sampled_from(["g", "h", "bob#1", "carol#2", "grüße/1"])
numbers = st.integers(1, 2**40)
counts = st.integers(1, 5)


def frame_calls() -> st.SearchStrategy[tuple[Any, ...]]:
    small = st.integers(0, 1000)
    stamps = st.integers(0, 2**60)
    members = st.lists(names, max_size=3)
    return st.one_of(
        st.tuples(st.just("send"), names, numbers, counts, small, stamps),
        st.tuples(
            st.just("deliver"), names, names, numbers, counts, st.integers(-1, 9), small, stamps
        ),
        st.tuples(st.just("view"), names, st.integers(0, 2**40), members),
        st.tuples(st.just("join"), names),
        st.tuples(st.just("leave"), names),
        st.tuples(st.just("lost"), numbers),
        st.tuples(
            st.just("protocol_event"), st.sampled_from(STATISTICAL_KINDS), names, names, numbers,
            st.integers(0, 3), st.text(max_size=5), st.integers(0, 9),
        ),
        st.tuples(st.just("flush")),
    )  # fmt: skip


class Expected:
    """The events that calls stand for, by the plainest code."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.views: dict[str, int] = {}

    def add(self, kind: str, group: str | None = None, **columns: Any) -> None:
        view = self.views.get(group) if group else None
        index = len(self.events) + 1
        columns = {"time": 1_000, "view": view, **columns}
        self.events.append(Event("alice#1", index, kind, group=group, run="r", **columns))

    def send(self, group: str, first: int, count: int, size: int, now_ns: int) -> None:
        sizes = [len(range(k, size, count)) for k in range(count)]  # dealt out one by one
        for k in range(count):
            self.add("send", group, message=f"alice#1/{group}/{first + k}", size=sizes[k],
                     time=now_ns)  # fmt: skip

    def deliver(
        self, group: str, sender: str, first: int, count: int, seq: int, overhead: int, now_ns: int
    ) -> None:
        for k in range(count):
            self.add("deliver", group, message=f"{sender}/{group}/{first + k}", sender=sender,
                     seq=None if seq < 0 else seq, overhead=self.dealt(overhead, count, k),
                     time=now_ns)  # fmt: skip

    def view(self, group: str, number: int, members: list[str]) -> None:
        self.views[group] = number
        self.add("view", group, members=tuple(members))

    def join(self, group: str) -> None:
        self.add("join", group)

    def leave(self, group: str) -> None:
        self.add("leave", group)
        self.views.pop(group, None)

    def lost(self, count: int) -> None:
        self.add("lost", note=f"{count} records missing")

    def protocol_event(
        self, kind: str, group: str, sender: str, first: int, count: int, note: str, overhead: int
    ) -> None:
        for k in range(count):
            self.add(kind, group, sender=sender, message=f"{sender}/{group}/{first + k}",
                     note=note or None, overhead=self.dealt(overhead, count, k))  # fmt: skip
        if not count:
            self.add(kind, group, sender=sender, note=note or None, overhead=overhead or None)

    @staticmethod
    def dealt(overhead: int, count: int, k: int) -> int | None:
        return len(range(k, overhead, count)) if overhead else None

    def flush(self) -> None:
        pass


@given(
    calls=st.lists(frame_calls(), max_size=30),
    segment_bytes=st.sampled_from([1, 400, 10**6]),
    buffer_bytes=st.sampled_from([1, 300, 65536]),
)
def test_any_calls_are_read_back_in_every_form(
    tmp_path_factory: pytest.TempPathFactory,
    calls: list[tuple[Any, ...]],
    segment_bytes: int,
    buffer_bytes: int,
) -> None:
    directory = tmp_path_factory.mktemp("any")
    log = recorder(directory, segment_bytes=segment_bytes, buffer_bytes=buffer_bytes)
    expected = Expected()
    for call, *arguments in calls:
        getattr(log, call)(*arguments)
        getattr(expected, call)(*arguments)
    log.end()
    expected.add("end")
    log.close()
    assert read_events(directory) == expected.events
    assert by_log(table_events(read_table(directory))) == expected.events
    seal_directory(directory)
    assert segments_in(directory) == []
    assert read_events(directory) == expected.events
    assert by_log(table_events(read_table(directory))) == expected.events


def test_a_segment_is_rotated_when_it_is_old(tmp_path: Path) -> None:
    clock = Clock()
    log = recorder(tmp_path, clock_ns=clock, segment_seconds=1.0)
    for number in range(1, 6):
        log.send("g", number, 1, 0, clock.now_ns)
        log.flush()
        clock.now_ns += 500_000_000
    log.close()
    # Blocks at 0, 0.5, 1.0 s | 1.5, 2.0 s: a segment is left at the first flush after its second.
    assert segments_in(tmp_path) == ["alice%231-00001.seg", "alice%231-00002.seg"]
    assert messages(read_events(tmp_path), "send") == [f"alice#1/g/{n}" for n in range(1, 6)]


def test_each_segment_can_be_read_without_the_others(tmp_path: Path) -> None:
    log = recorder(tmp_path, segment_bytes=1)
    for number in (1, 2, 3):
        log.deliver("g", "bob#1", number, 1, -1, 0, 0)
        log.flush()
    log.close()
    names = segments_in(tmp_path)
    assert len(names) == 3
    (tmp_path / "alone").mkdir()
    for number, name in enumerate(names, start=1):
        alone = tmp_path / "alone" / f"{number}.seg"
        alone.write_bytes((tmp_path / "run=r" / name).read_bytes())
        assert messages(read_events(alone), "deliver") == [f"bob#1/g/{number}"]


CHILD = """
    import sys, time
    from pathlib import Path
    from ordercast.trace.recorder import Recorder
    log = Recorder(Path(sys.argv[1]), run="r", process="alice#1")
    log.send("g", 1, 3, 30, time.time_ns())
    log.flush()
    log.deliver("g", "alice#1", 1, 2, 1, 0, time.time_ns())
    log.flush()
    log.deliver("g", "alice#1", 3, 1, 2, 0, time.time_ns())
    print("recorded", flush=True)
    sys.stdin.read()
"""


def test_what_was_flushed_survives_kill_9_and_nothing_else(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "recorded\n"
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    witness = recorder(tmp_path, "bob#1")
    witness.crash_of("alice#1")
    witness.close()
    events = read_events(tmp_path)
    assert [(event.index, event.kind, event.message) for event in events] == [
        (1, "send", "alice#1/g/1"),
        (2, "send", "alice#1/g/2"),
        (3, "send", "alice#1/g/3"),
        (4, "deliver", "alice#1/g/1"),
        (5, "deliver", "alice#1/g/2"),
        (6, "crash", None),
    ]


def crashes(directory: Path) -> list[tuple[str | None, int | None, str | None]]:
    found = [(e.process, e.index, e.note) for e in read_events(directory) if e.kind == "crash"]
    rows = table_events(read_table(directory))
    assert [(e.process, e.index, e.note) for e in rows if e.kind == "crash"] == found
    return found


def victim_and_two_observers(directory: Path, last_words: Callable[[Recorder], None]) -> None:
    victim = recorder(directory, "victim#1")
    victim.send("g", 1, 4, 0, 0)
    last_words(victim)
    for moment, name in ((9_000, "alice#1"), (5_000, "bob#1")):
        clock = Clock()
        clock.now_ns = moment
        observer = recorder(directory, name, clock_ns=clock)
        observer.crash_of("victim#1")
        observer.end()
        observer.close()


def test_a_crash_seen_by_two_is_the_last_event_of_the_victim_once(tmp_path: Path) -> None:
    victim_and_two_observers(tmp_path, Recorder.abort)
    assert crashes(tmp_path) == [("victim#1", 5, "seen by bob#1")]
    seal_directory(tmp_path)
    assert crashes(tmp_path) == [("victim#1", 5, "seen by bob#1")]


def test_a_process_that_ended_cleanly_did_not_crash_whatever_others_saw(tmp_path: Path) -> None:
    def close(victim: Recorder) -> None:
        victim.end()
        victim.close()

    victim_and_two_observers(tmp_path, close)
    assert crashes(tmp_path) == []
    seal_directory(tmp_path)
    assert crashes(tmp_path) == []


def test_a_crash_of_a_process_without_a_log_is_its_only_event(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    log.crash_of("victim#1")
    log.close()
    assert crashes(tmp_path) == [("victim#1", 1, "seen by alice#1")]


def test_a_crash_note_about_one_run_leaves_the_other_run_alone(tmp_path: Path) -> None:
    for run in ("r1", "r2"):
        log = Recorder(tmp_path, run=run, process="victim#1", seal=False)
        log.send("g", 1, 2, 0, 0)
        log.abort()
    log = Recorder(tmp_path, run="r2", process="alice#1", seal=False)
    log.crash_of("victim#1")
    log.close()
    assert [e.run for e in read_events(tmp_path) if e.kind == "crash"] == ["r2"]
    assert [e.run for e in table_events(read_table(tmp_path)) if e.kind == "crash"] == ["r2"]


def test_a_full_disk_is_noted_as_lost_records_and_recording_goes_on(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    segment = tmp_path / "run=r" / "alice%231-00001.seg"
    segment.symlink_to("/dev/full")
    log.view("g", 1, ["alice#1"])
    log.send("g", 1, 5, 0, 0)
    log.flush()
    log.send("g", 6, 5, 0, 0)
    log.flush()
    assert log.stats()["lost"] == 3
    segment.unlink()
    log.send("g", 11, 1, 0, 0)
    log.end()
    log.close()
    events = read_events(tmp_path)
    assert [(e.kind, e.message, e.note, e.view) for e in events] == [
        ("lost", None, "3 records missing", None),
        ("send", "alice#1/g/11", None, 1),
        ("end", None, None, None),
    ]


def test_memory_stays_bounded_while_the_disk_is_full(tmp_path: Path) -> None:
    log = recorder(tmp_path, buffer_bytes=1_000)
    segment = tmp_path / "run=r" / "alice%231-00001.seg"
    segment.symlink_to("/dev/full")
    for number in range(1, 200):
        log.protocol_event("hold", "g", "bob#1", number, 1, note=f"{number:0200d}")
        assert log.stats()["buffered"] <= 1_000
        assert sum(len(name) for name in log._new_names) <= 1_300
        assert len(log._names) < 20
    segment.unlink()
    log.end()
    log.close()
    first, *_, last = read_events(tmp_path)
    assert (first.kind, last.kind) == ("lost", "end")


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_block_that_fits_only_in_part_is_removed_again(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    log.deliver("g", "bob#1", 1, 1, -1, 0, 0)
    log.flush()
    with file_size_limit(log.stats()["bytes"] + 30):
        log.deliver("g", "carol#1", 1, 1, -1, 0, 0)
        log.flush()
        assert messages(read_events(tmp_path), "deliver") == ["bob#1/g/1"]
        assert os.path.getsize(tmp_path / "run=r" / "alice%231-00001.seg") == log.stats()["bytes"]
    log.deliver("g", "carol#1", 2, 1, -1, 0, 0)
    log.close()
    events = read_events(tmp_path)
    assert [event.kind for event in events] == ["deliver", "lost", "deliver"]
    assert events[2].message == "carol#1/g/2"


def test_a_torn_block_that_cannot_be_removed_ends_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, length: int) -> None:
        raise OSError("read-only")

    log = recorder(tmp_path)
    log.send("g", 1, 1, 0, 0)
    log.flush()
    monkeypatch.setattr(os, "ftruncate", refuse)
    with file_size_limit(log.stats()["bytes"] + 30):
        log.send("g", 2, 1, 0, 0)
        log.flush()
    log.send("g", 3, 1, 0, 0)
    log.end()
    log.close()
    assert [event.message for event in read_events(tmp_path)] == ["alice#1/g/1"]
    assert log.stats()["lost"] == 3


def test_the_buffer_stays_within_its_limit_without_any_flush(tmp_path: Path) -> None:
    log = recorder(tmp_path, buffer_bytes=1_000)
    for number in range(1, 200):
        log.send("g", number, 1, 0, 0)
        log.protocol_event("hold", "g", "bob#1", number, 1, note=f"{number:0200d}")
        assert log.stats()["buffered"] <= log.stats()["buffered_limit"] <= 1_000
        assert sum(len(name) for name in log._new_names) <= 1_300
    log.close()
    assert len(read_events(tmp_path)) == 398


def test_calls_after_close_are_counted_and_never_raise(tmp_path: Path) -> None:
    log = recorder(tmp_path)
    log.end()
    log.close()
    before = read_events(tmp_path)
    log.send("g", 1, 1, 0, 0)
    log.deliver("g", "bob#1", 1, 1, -1, 0, 0)
    log.view("g", 1, ["alice#1"])
    log.flush()
    log.close()
    log.abort()
    assert log.stats()["lost"] == 3
    assert read_events(tmp_path) == before


def test_abort_keeps_the_records_and_claims_no_end(tmp_path: Path) -> None:
    log = recorder(tmp_path, seal=True)
    log.send("g", 1, 2, 0, 0)
    log.abort()
    assert [event.kind for event in read_events(tmp_path)] == ["send", "send"]
    assert len(segments_in(tmp_path)) == 1


def test_stats_count_what_was_written(tmp_path: Path) -> None:
    log = recorder(tmp_path, segment_bytes=1)
    log.send("g", 1, 100, 0, 0)
    log.flush()
    log.send("g", 101, 100, 0, 0)
    log.lost(7)
    log.close()
    stats = log.stats()
    assert (stats["records"], stats["segments"], stats["lost"]) == (3, 2, 7)
    assert stats["bytes"] == sum(path.stat().st_size for path in tmp_path.rglob("*.seg"))


@pytest.mark.parametrize("seal", [False, True])
def test_a_second_log_of_the_same_process_in_one_run_is_refused(tmp_path: Path, seal: bool) -> None:
    log = recorder(tmp_path, seal=seal)
    log.end()
    log.close()
    with pytest.raises(UsageError, match="'alice#1' already"):
        recorder(tmp_path)


def test_a_recorder_without_a_run_or_a_process_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run and a process"):
        Recorder(tmp_path, run="", process="alice#1")
    with pytest.raises(ValueError, match="run and a process"):
        Recorder(tmp_path, run="r", process="")


WITHOUT_PYARROW = """
    import sys
    sys.modules["pyarrow"] = sys.modules["numpy"] = None
    from pathlib import Path
    from ordercast.trace.recorder import Recorder
    from ordercast.trace.read import read_events
    log = Recorder(Path(sys.argv[1]), run="r", process="alice#1", seal=True)
    log.send("g", 1, 2, 0, 0)
    log.end()
    log.close()
    print([event.kind for event in read_events(sys.argv[1])])
"""


def test_recording_and_reading_back_need_no_pyarrow(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_PYARROW), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['send', 'send', 'end']\n"
    assert segments_in(tmp_path) == ["alice%231-00001.seg"]
