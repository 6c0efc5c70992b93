"""Reading a growing folder: the same slice is always the same rows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from notation import trace
from ordercast.errors import TraceError
from ordercast.pipeline.streaming.sources import Place, advance, read_slice, slices_between
from ordercast.pipeline.streaming.sources.places import by_log
from ordercast.trace.read import read_events
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import Event
from ordercast.trace.seal import seal_directory
from ordercast.trace.write import write_csv, write_jsonl, write_parquet

LATER = float("inf")
SENT = "group g: p,q\np: send a g; deliver a g; send b g\nq: deliver a g; end"


def read(folder: Path, start: Place, end: Place) -> list[Event]:
    return [row for part in slices_between(start, end) for row in read_slice(folder, part)]


def record(folder: Path, process: str, frames: int, *, close: bool = True) -> Recorder:
    """Segments of about two records each; the run is "r"."""
    recorder = Recorder(folder, run="r", process=process, segment_bytes=200, seal=False)
    recorder.group("g", ["p", "q"], order="fifo", protocol="x", scope="domain")
    recorder.crash_of("z")
    recorder.protocol_event("nack", "g", "q", 1, 2)
    recorder.protocol_event("null", "g", "q", 0, 0)
    for n in range(frames):
        recorder.send("g", 3 * n + 1, 3, 30, 1_000 + n)
        recorder.deliver("g", process, 3 * n + 1, 3, n, 12, 2_000 + n)
        recorder.flush()
    if close:
        recorder.end()
        recorder.close()
    return recorder


def test_a_recording_is_read_in_order_and_in_full_whatever_the_batches(tmp_path: Path) -> None:
    record(tmp_path, "p", 7)
    place: Place = {}
    rows: list[Event] = []
    while (then := advance(tmp_path, place, now=LATER, most_rows=4)) != place:
        rows += read(tmp_path, place, then)
        place = then
    own = [row for row in rows if row.process == "p"]
    assert [row.index for row in own] == list(range(1, 7 * 6 + 5))
    assert own == [row for row in read_events(tmp_path) if row.process == "p"]


def test_a_slice_is_the_same_after_its_segment_was_sealed(tmp_path: Path) -> None:
    record(tmp_path, "p", 7)
    places: list[Place] = [{}]
    while (then := advance(tmp_path, places[-1], now=LATER, most_rows=4)) != places[-1]:
        places.append(then)
    before = [read(tmp_path, *pair) for pair in pairwise(places)]
    assert seal_directory(tmp_path)
    assert not list(tmp_path.rglob("*.seg"))
    after = [read(tmp_path, *pair) for pair in pairwise(places)]
    assert after == before
    assert len(before) > 5


def test_the_unfinished_segment_of_a_process_at_work_is_read(tmp_path: Path) -> None:
    recorder = record(tmp_path, "p", 2, close=False)
    place = advance(tmp_path, {}, now=LATER, most_rows=1_000)
    assert len([row for row in read(tmp_path, {}, place) if row.process == "p"]) == 15
    recorder.end()
    recorder.flush()
    then = advance(tmp_path, place, now=LATER, most_rows=1_000)
    assert [row.kind for row in read(tmp_path, place, then)] == ["end"]
    recorder.close()


def test_a_place_stays_small_however_many_segments_there_are(tmp_path: Path) -> None:
    record(tmp_path, "p", 40)
    assert len(list(tmp_path.rglob("*.seg"))) > 20
    assert len(advance(tmp_path, {}, now=LATER, most_rows=10_000)) == 1


def test_a_missing_segment_in_the_middle_of_a_log_is_refused(tmp_path: Path) -> None:
    record(tmp_path, "p", 7)
    sorted(tmp_path.rglob("*.seg"))[1].unlink()
    with pytest.raises(TraceError, match="missing"):
        advance(tmp_path, {}, now=LATER, most_rows=1_000)


def test_a_growing_jsonl_file_is_read_line_by_line(tmp_path: Path) -> None:
    write_jsonl(trace(SENT), tmp_path / "all.jsonl")
    text = (tmp_path / "all.jsonl").read_bytes()
    (tmp_path / "all.jsonl").unlink()
    rows: list[Event] = []
    place: Place = {}
    for upto in range(0, len(text) + 1, 7):
        (tmp_path / "live.jsonl").write_bytes(text[:upto])
        then = advance(tmp_path, place, now=0.0, most_rows=100)
        rows += read(tmp_path, place, then)
        place = then
    (tmp_path / "live.jsonl").write_bytes(text)
    rows += read(tmp_path, place, advance(tmp_path, place, now=0.0, most_rows=100))
    assert rows == trace(SENT)


def test_a_bad_line_is_refused_with_its_number_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "live.jsonl"
    write_jsonl(trace(SENT), file)
    place = advance(tmp_path, {}, now=0.0, most_rows=100)
    for bad, reason in ((b'{"process": "p"\n', "bad JSON"), (b'{"kind": "sent"}\n', "kind")):
        good = file.read_bytes()
        file.write_bytes(good + bad)
        with pytest.raises(TraceError, match=reason) as refused:
            read(tmp_path, place, advance(tmp_path, place, now=0.0, most_rows=100))
        assert refused.value.line == len(trace(SENT)) + 1
        file.write_bytes(good)


def test_a_file_that_shrinks_is_refused(tmp_path: Path) -> None:
    write_jsonl(trace(SENT), tmp_path / "live.jsonl")
    place = advance(tmp_path, {}, now=0.0, most_rows=100)
    (tmp_path / "live.jsonl").write_bytes(b"")
    with pytest.raises(TraceError, match="shorter"):
        advance(tmp_path, place, now=0.0, most_rows=100)


@pytest.mark.parametrize(
    ("before", "last"),
    [(b"", b"}}"), (b" ", b""), (b" ", b"}}"), (b"  ", None)],
    ids=["longer", "moved", "both", "moved, with the same end"],
)
def test_lines_that_are_others_now_are_no_bad_json(
    tmp_path: Path, before: bytes, last: bytes | None
) -> None:
    file = tmp_path / "live.jsonl"
    write_jsonl(trace(SENT), file)
    *lines, line = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines))
    start = advance(tmp_path, {}, now=0.0, most_rows=100)
    file.write_bytes(b"".join([*lines, line]))
    end = advance(tmp_path, start, now=0.0, most_rows=100)
    assert len(read(tmp_path, start, end)) == 1
    changed = line[2:] if last is None else line.replace(b"}", b"}" + last)
    file.write_bytes(before + b"".join(lines) + changed)
    with pytest.raises(TraceError, match="it changed after it was read"):
        read(tmp_path, start, end)


def test_csv_and_parquet_are_read_whole_once_nobody_writes_to_them(tmp_path: Path) -> None:
    write_csv(trace(SENT), tmp_path / "a.csv")
    write_parquet(trace(SENT), tmp_path / "b")
    written = (tmp_path / "a.csv").stat().st_mtime
    assert advance(tmp_path, {}, now=written, most_rows=100) == {}
    place = advance(tmp_path, {}, now=LATER, most_rows=100)
    assert sorted(map(str, read(tmp_path, {}, place))) == sorted(map(str, 2 * trace(SENT)))
    (tmp_path / "a.csv").write_bytes(b"other")
    with pytest.raises(TraceError, match=r"only \.jsonl files may grow"):
        read(tmp_path, {}, place)


def test_hidden_files_and_our_own_are_no_traces(tmp_path: Path) -> None:
    for name in ("_ordercast_watch", ".hidden"):
        (tmp_path / name).mkdir()
        write_jsonl(trace(SENT), tmp_path / name / "a.jsonl")
    assert advance(tmp_path, {}, now=LATER, most_rows=100) == {}


def test_the_slices_of_a_log_are_read_by_one_task(tmp_path: Path) -> None:
    record(tmp_path, "p", 7)
    record(tmp_path, "q", 7)
    place = advance(tmp_path, {}, now=LATER, most_rows=1_000)
    assert len(by_log(slices_between({}, place))) == 2
