"""Several files read together: which, in which order, and what follows from all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.errors import TraceError
from ordercast.trace.mapping import LogMapping, read_mapping
from ordercast.trace.mapping.files import mapped_files
from ordercast.trace.mapping.reading import mapped_events
from ordercast.trace.read import read_events
from ordercast.trace.schema import Event

LINES = """
format = "jsonl"
[columns]
process = "who"
index = { by = "line" }
kind = "what"
message = "id"
group = { value = "g" }
run = { field = "run", optional = true }
"""
TIMES = LINES.replace('"line" }', '"time" }\ntime = { field = "t", unit = "ns" }')


def mapping_of(tmp_path: Path, text: str) -> LogMapping:
    file = tmp_path / "mapping.toml"
    file.write_text(text)
    return read_mapping(file)


def log(file: Path, *rows: str) -> None:
    """Rows such as "p send m1 7": who, what, id, t."""
    file.parent.mkdir(exist_ok=True, parents=True)
    names = ("who", "what", "id", "t")
    with file.open("w") as out:
        for row in rows:
            values = dict(zip(names, row.split(), strict=False))
            out.write(json.dumps({**values, "t": int(values.get("t", 0))}) + "\n")


def order_of(events: list[Event], process: str) -> list[str]:
    return [event.message or "" for event in events if event.process == process]


def test_a_folder_is_read_by_the_patterns_of_the_mapping(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, 'files = ["app-*.log"]\n' + LINES)
    wanted = [tmp_path / "app-1.log", tmp_path / "deep" / "app-2.log"]
    for file in (*wanted, tmp_path / "other.log", tmp_path / ".git" / "app-3.log"):
        log(file, "p send m1")
    assert mapped_files(tmp_path, mapping) == wanted
    assert mapped_files([tmp_path, tmp_path / "app-1.log"], mapping) == wanted
    named = tmp_path / "other.log"
    assert mapped_files(named, mapping) == [named], "what is named outright is read"
    everything = mapping_of(tmp_path, 'files = "*"\n' + LINES)
    assert tmp_path / "mapping.toml" not in mapped_files(tmp_path, everything)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match=r"no files here for .*: app-\*\.log \(key 'files'\)"):
        mapped_files(tmp_path / "empty", mapping)
    with pytest.raises(TraceError, match="no such file"):
        mapped_files(tmp_path / "nowhere", mapping)


def test_each_source_reads_its_own_files(tmp_path: Path) -> None:
    source = "[[source]]\nfiles = '{}*'\nformat = 'jsonl'\n[source.columns]\nprocess = 'who'\n" \
             "index = {{ by = 'time' }}\ntime = {{ field = 't', unit = 'ns' }}\n" \
             "kind = {{ value = '{}' }}\nmessage = 'id'\ngroup = {{ value = 'g' }}\n"  # fmt: skip
    text = source.format("out", "send") + source.format("in", "deliver")
    mapping = mapping_of(tmp_path, text)
    log(tmp_path / "in.log", "p . m1 7", "p . m2 9")
    log(tmp_path / "out.log", "p . m3 7")
    found = read_events(tmp_path, mapping)
    assert [(event.kind, event.message) for event in found] == [
        ("send", "m3"), ("deliver", "m1"), ("deliver", "m2"),
    ], "at equal times the source that is listed first comes first"  # fmt: skip
    (tmp_path / "x.log").write_text("")
    with pytest.raises(TraceError, match=r"x\.log: no file for .*, which reads out\*, in\*"):
        mapped_files(tmp_path / "x.log", mapping)


def test_by_line_each_process_must_have_its_rows_in_one_file(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, LINES)
    log(tmp_path / "a.log", "p send m1", "q deliver m1")
    log(tmp_path / "b.log", "r deliver m1")
    assert len(read_events(tmp_path, mapping)) == 3
    log(tmp_path / "c.log", "q deliver m2")
    with pytest.raises(TraceError, match=r"c\.log: process 'q' has rows in .*a\.log too, and"):
        read_events(tmp_path, mapping)


def test_by_time_rows_are_sorted_within_and_across_files(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, TIMES)
    log(tmp_path / "new.log", "p send m5 5000", "p send m3 3000", "p send m4 3000")
    log(tmp_path / "old.log", "p send m1 1000", "p send m2 2000", "p send m6 5000")
    found = read_events(tmp_path, mapping)
    assert order_of(found, "p") == ["m1", "m2", "m3", "m4", "m5", "m6"]
    assert len({event.index for event in found}) == 6


def test_by_time_many_equal_times_stay_in_the_order_of_their_lines(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, TIMES)
    log(tmp_path / "a.log", *(f"p send m{n:03d} 8" for n in range(100)), "p send m100 9")
    log(tmp_path / "b.log", *(f"p deliver x{n:03d} 8" for n in range(100)))
    found = read_events(tmp_path, mapping)
    assert [m for m in order_of(found, "p") if m[0] == "m"] == [f"m{n:03d}" for n in range(101)]
    assert [m for m in order_of(found, "p") if m[0] == "x"] == [f"x{n:03d}" for n in range(100)]
    assert len({event.index for event in found}) == len(found), "no two rows have one index"


def test_by_time_a_row_without_a_time_is_refused(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, TIMES)
    (tmp_path / "a.log").write_text('{"who": "p", "what": "send", "id": "m1"}\n')
    with pytest.raises(TraceError, match=r"a\.log:1, column 't': missing; a row of kind 'send'"):
        read_events(tmp_path, mapping)


def test_the_run_is_a_field_or_the_folder(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, LINES)
    log(tmp_path / "run=one" / "a.log", "p send m1")
    log(tmp_path / "b.log", "p send m1")
    with (tmp_path / "b.log").open("a") as out:
        out.write('{"who": "p", "what": "send", "id": "m2", "run": "two"}\n')
    assert {event.run for event in read_events(tmp_path, mapping)} == {"", "one", "two"}


GROUP = '[[group]]\nname = "g"\nmembers = ["p", "q", "r"]\norder = "fifo"\n'


def test_declared_groups_stand_in_every_run(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, LINES + GROUP)
    log(tmp_path / "run=1" / "a.log", "p send m1")
    log(tmp_path / "run=2" / "a.log", "p send m1")
    declared = [event for event in read_events(tmp_path, mapping) if event.kind == "group"]
    assert declared == [
        Event(None, None, "group", group="g", run=run, members=("p", "q", "r"), order="fifo",
              scope="domain")
        for run in ("1", "2")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("complete", "ended"),
    [("true", {"p": 3, "r": 1}), ("false", {}), ('["p"]', {"p": 3}), ('["r", "q"]', {"r": 1})],
)
def test_a_complete_log_gets_an_end_unless_it_has_crashed(
    tmp_path: Path, complete: str, ended: dict[str, int]
) -> None:
    mapping = mapping_of(tmp_path, f"complete = {complete}\n" + LINES + GROUP)
    log(tmp_path / "p.log", "p send m1", "p send m2")
    log(tmp_path / "q.log", "q deliver m1", "q crash")
    ends = {e.process: e.index for e in read_events(tmp_path, mapping) if e.kind == "end"}
    assert ends == ended


def test_a_complete_process_that_nobody_is_is_refused(tmp_path: Path) -> None:
    mapping = mapping_of(tmp_path, 'complete = ["bily"]\n' + LINES)
    log(tmp_path / "a.log", "billy send m1")
    with pytest.raises(TraceError, match=r"no process 'bily'; did you mean 'billy'\?"):
        read_events(tmp_path, mapping)


def test_declared_names_that_no_row_has_are_told(tmp_path: Path) -> None:
    names = '[[group]]\nname = "gg"\nmembers = ["p", "qq"]\n'
    mapping = mapping_of(tmp_path, LINES + names)
    log(tmp_path / "a.log", "p send m1", "q deliver m1")
    said: list[str] = []
    mapped_events(tmp_path, mapping, said.append)
    assert said == [
        "2 of 2 rows are events (1 send, 1 deliver), and 1 declared group; "
        "no row of the declared group gg (there is g); "
        "no row of the declared member qq (there is p, q)"
    ]
