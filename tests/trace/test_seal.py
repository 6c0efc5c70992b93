"""Sealing: segments become Parquet, nothing is lost, nothing is doubled."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ordercast.errors import TraceError
from ordercast.trace.layout import sealed_path
from ordercast.trace.read import read_events, read_table, trace_files
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import COLUMNS
from ordercast.trace.seal import seal_directory


def record(directory: Path, *, blocks: int = 3, close: bool = True, seal: bool = False) -> Recorder:
    """A log with one segment per block, of two messages each."""
    log = Recorder(directory, run="r", process="alice#1", segment_bytes=1, seal=seal)
    for block in range(blocks):
        log.send("g", 2 * block + 1, 2, 10, 0)
        log.flush()
    if close:
        log.end()
        log.close()
    return log


def unfinished(directory: Path) -> Recorder:
    """A log whose only segment is still being written."""
    log = Recorder(directory, run="r", process="alice#1")
    log.send("g", 1, 2, 10, 0)
    log.flush()
    return log


def file_names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*") if path.is_file())


def test_sealing_replaces_each_segment_by_a_parquet_file_with_the_same_events(
    tmp_path: Path,
) -> None:
    record(tmp_path)
    before = read_events(tmp_path)
    written = seal_directory(tmp_path)
    assert file_names(tmp_path) == [f"alice%231-{n:05d}.seg.parquet" for n in (1, 2, 3, 4)]
    assert sorted(path.name for path in written) == file_names(tmp_path)
    assert read_events(tmp_path) == before
    assert pq.read_schema(written[0]).names == list(COLUMNS)


def test_close_seals_what_the_recorder_wrote(tmp_path: Path) -> None:
    record(tmp_path, seal=True)
    assert file_names(tmp_path) == [f"alice%231-{n:05d}.seg.parquet" for n in (1, 2, 3, 4)]
    assert len(read_events(tmp_path)) == 7


@pytest.mark.parametrize("blocks", [1, 3])
def test_close_seals_the_segment_that_was_being_written(tmp_path: Path, blocks: int) -> None:
    """It is not full, so no other one follows it."""
    log = Recorder(tmp_path, run="r", process="alice#1", seal=True)
    for block in range(blocks):
        log.send("g", 2 * block + 1, 2, 10, 0)
        log.flush()
    log.end()
    log.close()
    assert file_names(tmp_path) == ["alice%231-00001.seg.parquet"]
    assert len(read_events(tmp_path)) == 2 * blocks + 1


def test_a_declaration_that_names_no_protocol_is_sealed_as_it_is(tmp_path: Path) -> None:
    log = Recorder(tmp_path, run="r", process="alice#1", seal=True)
    log.group("g", ["alice#1"], order="fifo", protocol="nak", scope=None)
    log.group("h", ["alice#1"], order=None, protocol=None, scope=None)
    log.close()
    declared = {event.group: (event.order, event.protocol) for event in read_events(tmp_path)}
    assert declared == {"g": ("fifo", "nak"), "h": (None, None)}


def test_close_without_time_to_seal_leaves_readable_segments(tmp_path: Path) -> None:
    log = Recorder(tmp_path, run="r", process="alice#1", seal_seconds=0)
    log.end()
    log.close()
    assert file_names(tmp_path) == ["alice%231-00001.seg"]
    assert len(read_events(tmp_path)) == 1


def test_a_segment_left_beside_its_sealed_form_is_not_counted_twice(tmp_path: Path) -> None:
    record(tmp_path)
    before = read_events(tmp_path)
    copies = {path: path.read_bytes() for path in tmp_path.rglob("*.seg")}
    seal_directory(tmp_path)
    for path, content in copies.items():
        path.write_bytes(content)
    assert read_events(tmp_path) == before
    assert len(read_table(tmp_path)) == len(before)
    assert seal_directory(tmp_path) == []
    assert not list(tmp_path.rglob("*.seg"))
    assert read_events(tmp_path) == before


def test_both_forms_of_a_segment_given_by_name_are_not_counted_twice(tmp_path: Path) -> None:
    record(tmp_path, blocks=1)
    before = read_events(tmp_path)
    copies = {path: path.read_bytes() for path in tmp_path.rglob("*.seg")}
    seal_directory(tmp_path)
    for path, content in copies.items():
        path.write_bytes(content)
    assert read_events(sorted(tmp_path.rglob("*.seg*"))) == before


def test_an_abandoned_draft_is_not_read(tmp_path: Path) -> None:
    record(tmp_path, blocks=1)
    (tmp_path / "run=r" / ".17-alice%231-00001.seg.parquet").write_bytes(b"PAR1 and then the end")
    assert len(read_events(tmp_path)) == 3


def test_the_segment_of_a_recorder_at_work_is_left_alone(tmp_path: Path) -> None:
    log = unfinished(tmp_path)
    assert seal_directory(tmp_path) == []
    log.end()
    log.close()
    assert [event.kind for event in read_events(tmp_path)] == ["send", "send", "end"]


def test_the_torn_tail_of_a_killed_process_is_sealed_when_asked_for(tmp_path: Path) -> None:
    unfinished(tmp_path)
    segment = tmp_path / "run=r" / "alice%231-00001.seg"
    segment.write_bytes(segment.read_bytes() + b"\x09\0\0")
    assert seal_directory(tmp_path, tails=True) == [sealed_path(segment)]
    assert [event.message for event in read_events(tmp_path)] == ["alice#1/g/1", "alice#1/g/2"]


def test_a_segment_sealed_while_a_reader_looks_is_read_in_its_new_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path)
    before = read_events(tmp_path)
    files = trace_files(tmp_path)
    seal_directory(tmp_path)
    monkeypatch.setattr("ordercast.trace.read.trace_files", lambda paths: files)
    assert read_events(tmp_path) == before
    assert len(read_table(tmp_path)) == len(before)


def test_a_segment_that_was_found_and_then_sealed_is_read_in_its_new_form(tmp_path: Path) -> None:
    record(tmp_path)
    found, before = trace_files(tmp_path), read_events(tmp_path)
    seal_directory(tmp_path)
    assert read_events(found) == before
    assert len(read_table(found)) == len(before)


@pytest.mark.parametrize("seal", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_log_that_lacks_a_segment_before_its_last_is_refused(
    tmp_path: Path, number: int, seal: bool
) -> None:
    record(tmp_path, seal=seal)
    next(tmp_path.rglob(f"*-{number:05d}.seg*")).unlink()
    missing = rf"alice%231-{number:05d}\.seg: this segment of the log is miss"
    for read in (read_events, read_table):
        with pytest.raises(TraceError, match=missing):
            read(tmp_path)


def test_a_log_whose_first_segments_are_all_gone_is_refused(tmp_path: Path) -> None:
    record(tmp_path)
    for number in (1, 2, 3):
        next(tmp_path.rglob(f"*-{number:05d}.seg")).unlink()
    with pytest.raises(TraceError, match=r"alice%231-00001\.seg: this segment"):
        read_events(tmp_path)


def test_one_segment_of_a_log_can_be_read_by_its_name(tmp_path: Path) -> None:
    record(tmp_path)
    (third,) = tmp_path.rglob("*-00003.seg")
    assert [event.message for event in read_events(third)] == ["alice#1/g/5", "alice#1/g/6"]


def test_a_torn_segment_that_others_follow_is_refused(tmp_path: Path) -> None:
    record(tmp_path)
    (second,) = tmp_path.rglob("*-00002.seg")
    second.write_bytes(second.read_bytes()[:-20])
    with pytest.raises(TraceError, match="torn, and yet alice%231-00003"):
        read_events(tmp_path)
    with pytest.raises(TraceError, match="torn, and yet alice%231-00003"):
        read_table(tmp_path)


def test_sealing_refuses_a_damaged_segment_and_keeps_it(tmp_path: Path) -> None:
    record(tmp_path, blocks=1)
    (first,) = tmp_path.rglob("*-00001.seg")
    content = bytearray(first.read_bytes())
    content[70] ^= 1
    first.write_bytes(content)
    with pytest.raises(TraceError, match="damaged"):
        seal_directory(tmp_path)
    assert first.read_bytes() == content


def test_sealing_runs_as_a_command_of_its_own(tmp_path: Path) -> None:
    unfinished(tmp_path)
    command = [sys.executable, "-m", "ordercast.trace.seal", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    done = subprocess.run([*command, "--tails"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/run=r/alice%231-00001.seg.parquet\n"
