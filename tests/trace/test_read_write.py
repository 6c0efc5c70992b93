"""Readers and writers: what is written reads back, what cannot be read is refused by place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import TraceError
from ordercast.trace.read import read_events, read_table
from ordercast.trace.schema import KINDS, Event
from ordercast.trace.tables import TABLE_SCHEMA, table_events
from ordercast.trace.write import write_csv, write_jsonl, write_parquet

Writer = Callable[[list[Event], Path], object]
WRITERS: dict[str, Writer] = {
    "trace.jsonl": write_jsonl,
    "trace.csv": write_csv,
    "folder": write_parquet,
}

# Text that survives CSV: any but the empty one, which stands for "absent" there.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
longs = st.integers(-(2**63) + 1, 2**61)
member_lists = st.lists(texts, max_size=3).map(tuple)


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Any event that a reader must accept."""
    kind = draw(st.sampled_from(KINDS))
    maybe = {name: draw(st.none() | texts) for name in ("sender", "layer", "note", "order")}
    numbers = {name: draw(st.none() | longs) for name in ("time", "seq", "size", "overhead")}
    own = kind != "group"
    return Event(
        process=draw(texts) if own else None,
        index=draw(longs) if own else None,
        kind=kind,
        message=draw(texts if kind in ("send", "deliver") else st.none() | texts),
        group=draw(texts),
        run=draw(st.sampled_from(["", "1", "a b"])),
        view=draw(longs if kind == "view" else st.none() | longs),
        members=draw(st.none() | member_lists),
        **maybe,
        **numbers,
    )  # type: ignore[arg-type]


def in_order(rows: list[Event]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("name", WRITERS)
@given(written=st.lists(events(), min_size=1, max_size=6))
def test_what_is_written_reads_back(
    name: str, tmp_path_factory: pytest.TempPathFactory, written: list[Event]
) -> None:
    path = tmp_path_factory.mktemp("trace") / name
    WRITERS[name](written, path)
    assert in_order(read_events(path)) == in_order(written)
    assert in_order(table_events(read_table(path))) == in_order(written)


def test_events_come_sorted_by_run_process_and_index(tmp_path: Path) -> None:
    rows = [
        Event(process, index, "end", run=run)
        for run in ("2", "1")
        for process in ("b", "a")
        for index in (10, 9)
    ]
    write_jsonl(rows, tmp_path / "a.jsonl")
    assert read_events(tmp_path) == list(reversed(rows))


def test_five_columns_suffice(tmp_path: Path) -> None:
    path = tmp_path / "five.csv"
    path.write_text("process,index,kind,message,group\np,1,send,m,g\nq,1,deliver,m,g\n")
    expected = [Event("p", 1, "send", "m", "g"), Event("q", 1, "deliver", "m", "g")]
    assert read_events(path) == expected
    assert table_events(read_table(path)) == expected


def test_columns_that_the_schema_does_not_know_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "more.jsonl"
    path.write_text('{"process":"p","index":1,"kind":"end","host":"h","tags":{"a":1}}\n')
    assert read_events(path) == [Event("p", 1, "end")]


@pytest.mark.parametrize(
    ("cell", "members"),
    [("a|b|c", ("a", "b", "c")), ("a", ("a",)), ('"[""a|b"",""c""]"', ("a|b", "c")), ("[]", ())],
)
def test_members_are_a_json_array_or_separated_by_bars(
    tmp_path: Path, cell: str, members: tuple[str, ...]
) -> None:
    path = tmp_path / "members.csv"
    path.write_text(f"process,index,kind,message,group,view,members\np,1,view,,g,1,{cell}\n")
    assert read_events(path)[0].members == members


@pytest.mark.parametrize(
    ("cell", "time"),
    [
        ("1500000000123456789", 1500000000123456789),
        ("-5", -5),
        ("2017-07-14T02:40:00.123456789Z", 1500000000123456789),
        ("2017-07-14 02:40:00", 1500000000000000000),
        ("2017-07-14T04:40:00.5+02:00", 1500000000500000000),
        ("1969-12-31T23:59:59.25Z", -750000000),
        ("", None),
    ],
)
def test_time_is_nanoseconds_or_an_iso_timestamp(
    tmp_path: Path, cell: str, time: int | None
) -> None:
    path = tmp_path / "time.csv"
    path.write_text(f"process,index,kind,message,group,time\np,1,end,,,{cell}\n")
    assert read_events(path)[0].time == time


def test_a_declaration_belongs_to_nobody_even_if_the_row_names_a_process(tmp_path: Path) -> None:
    row = {"process": "p", "index": 3, "kind": "group", "message": None, "group": "g"}
    expected = [Event(None, None, "group", None, "g", members=("p",))]
    path = tmp_path / "g.csv"
    path.write_text("process,index,kind,message,group,members\np,3,group,,g,p\n")
    assert read_events(path) == expected
    path = tmp_path / "g.parquet"
    pq.write_table(pa.Table.from_pylist([{**row, "members": ["p"]}]), path)
    assert read_events(path) == expected


REFUSED_LINES = {
    "bad JSON": ('{"process":"p",', None, "bad JSON"),
    "bytes that are not UTF-8": (b'{"process":"\xff"}', None, "bad JSON"),
    "not an object": ("[1]", None, "JSON object"),
    "no kind": ('{"process":"p","index":1}', "kind", "missing"),
    "unknown kind": ('{"process":"p","index":1,"kind":"sent"}', "kind", "unknown kind 'sent'"),
    "no process": ('{"index":1,"kind":"end"}', "process", "missing"),
    "empty process": ('{"process":"","index":1,"kind":"end"}', "process", "missing"),
    "no index": ('{"process":"p","kind":"end"}', "index", "missing"),
    "index a string": ('{"process":"p","index":"1","kind":"end"}', "index", "integer"),
    "index a fraction": ('{"process":"p","index":1.5,"kind":"end"}', "index", "integer"),
    "index true": ('{"process":"p","index":true,"kind":"end"}', "index", "integer"),
    "index too large": (
        '{"process":"p","index":9223372036854775808,"kind":"end"}', "index", "64 bits"
    ),
    "process a number": ('{"process":7,"index":1,"kind":"end"}', "process", "string"),
    "send without message": (
        '{"process":"p","index":1,"kind":"send","group":"g"}', "message", "missing"
    ),
    "deliver without group": (
        '{"process":"p","index":1,"kind":"deliver","message":"m"}', "group", "missing"
    ),
    "view without number": (
        '{"process":"p","index":1,"kind":"view","group":"g","members":["p"]}', "view", "missing"
    ),
    "declaration without group": ('{"kind":"group","members":["p"]}', "group", "missing"),
    "members a number": (
        '{"process":"p","index":1,"kind":"end","members":3}', "members", "list of names"
    ),
    "members of numbers": (
        '{"process":"p","index":1,"kind":"end","members":[3]}', "members", "list of names"
    ),
    "members with a hole": (
        '{"process":"p","index":1,"kind":"end","members":"a||b"}', "members", "list of names"
    ),
    "members half an array": (
        '{"process":"p","index":1,"kind":"end","members":"[\\"a\\""}', "members", "bad JSON array"
    ),
    "time in words": (
        '{"process":"p","index":1,"kind":"end","time":"noon"}', "time", "ISO timestamp"
    ),
    "time on no day": (
        '{"process":"p","index":1,"kind":"end","time":"2026-02-30T00:00:00"}', "time", "day"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_LINES)
def test_a_json_line_that_cannot_be_read_is_refused_by_place(tmp_path: Path, case: str) -> None:
    line, column, reason = REFUSED_LINES[case]
    raw = line.encode() if isinstance(line, str) else line
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"process":"p","index":9,"kind":"end"}\n\n' + raw + b"\n")
    with pytest.raises(TraceError, match=reason) as refusal:
        read_events(path)
    error = refusal.value
    assert (error.file, error.line, error.column) == (str(path), 3, column)


HEADER = "process,index,kind,message,group"


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("process,index,kind,message\np,1,end,\n", 1, "group", "missing column"),
        ("", 1, "process, index, kind, message, group", "the file is empty"),
        ("process;index;kind;message;group\n", 1, "process, index, kind, message, group", "semi"),
        ("Process,index,kind,message,group\n", 1, "process", "found 'Process', write 'process'"),
        ("process, index,kind,message,group\n", 1, "index", "found ' index', write 'index'"),
        (f"{HEADER},kind\n", 1, "kind", "twice"),
        (f"{HEADER}\np,1,end,,\np,x,end,,\n", 3, "index", "integer, not 'x'"),
        (f"{HEADER}\np,,end,,\n", 2, "index", "missing"),
        (f"{HEADER}\n,1,end,,\n", 2, "process", "missing"),
        (f"{HEADER}\np,1,,,\n", 2, "kind", "missing"),
        (f"{HEADER}\np,1,gone,,\n", 2, "kind", "unknown kind"),
        (f"{HEADER}\np,1,end\n", 2, None, "3 cells where the header has 5"),
        (f'{HEADER}\np,1,end,,"\n', 2, None, "bad CSV"),
        (f"{HEADER},view\np,1,end,,,1.0\n", 2, "view", "integer"),
    ],
)
def test_a_csv_that_cannot_be_read_is_refused_by_place(
    tmp_path: Path, text: str, line: int, column: str | None, reason: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=reason) as refusal:
        read_events(path)
    error = refusal.value
    assert (error.file, error.line, error.column) == (str(path), line, column)


def test_a_csv_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(HEADER.encode() + b"\np\xff,1,end,,\n")
    with pytest.raises(TraceError, match="bad CSV"):
        read_events(path)


GOOD_ROW: dict[str, Any] = {
    "process": "p", "index": 1, "kind": "send", "message": "m", "group": "g",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "line", "column", "reason"),
    [
        ({"index": "1"}, None, "index", "integer column, not string"),
        ({"index": 1.0}, None, "index", "integer column, not double"),
        ({"process": 4}, None, "process", "string column, not int64"),
        ({"kind": "sent"}, 2, "kind", "unknown kind 'sent'"),
        ({"kind": None}, 2, "kind", "missing"),
        ({"process": None}, 2, "process", "missing"),
        ({"process": ""}, 2, "process", "missing"),
        ({"index": None}, 2, "index", "missing"),
        ({"message": None}, 2, "message", "missing"),
        ({"kind": "view", "members": ["p"]}, 2, "view", "missing"),
        ({"members": 3}, None, "members", "list of strings, not int64"),
        ({"members": "[1]"}, 2, "members", "list of names"),
    ],
)
def test_a_parquet_file_that_cannot_be_read_is_refused_by_place(
    tmp_path: Path, change: dict[str, Any], line: int | None, column: str, reason: str
) -> None:
    path = tmp_path / "bad.parquet"
    mistyped = line is None
    first = {**GOOD_ROW, **change} if mistyped else {**GOOD_ROW, **dict.fromkeys(change)}
    first = first if mistyped else {**first, **GOOD_ROW}
    pq.write_table(pa.Table.from_pylist([first, {**GOOD_ROW, **change}]), path)
    for read in (read_events, read_table):
        with pytest.raises(TraceError, match=reason) as refusal:
            read(path)
        error = refusal.value
        assert (error.file, error.line, error.column) == (str(path), line, column)


def test_a_parquet_file_without_a_needed_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"process": ["p"], "index": [1], "kind": ["end"]}), path)
    with pytest.raises(TraceError, match="missing column") as refusal:
        read_table(path)
    assert refusal.value.column == "message, group"


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    (path,) = write_parquet([Event("p", 1, "end")], tmp_path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(TraceError, match="not readable as Parquet"):
        read_events(tmp_path)


def test_foreign_parquet_types_are_taken_for_what_they_mean(tmp_path: Path) -> None:
    path = tmp_path / "foreign.parquet"
    table = pa.table(
        {
            "process": pa.array(["p", "p"], pa.large_string()),
            "index": pa.array([1, 2], pa.int32()),
            "kind": pa.array(["view", "end"]).dictionary_encode(),
            "message": pa.nulls(2),
            "group": ["g", ""],
            "view": pa.array([1, None], pa.uint8()),
            "members": ["a|b", None],
            "time": pa.array([1_000, None], pa.timestamp("us", "UTC")),
            "extra": [1.5, 2.5],
        }
    )
    pq.write_table(table, path)
    expected = [
        Event("p", 1, "view", None, "g", view=1, members=("a", "b"), time=1_000_000),
        Event("p", 2, "end"),
    ]
    assert read_events(path) == expected
    assert read_table(path).schema == TABLE_SCHEMA


def test_a_folder_names_the_run_where_the_rows_do_not(tmp_path: Path) -> None:
    folder = tmp_path / "run=night%207"
    folder.mkdir()
    (folder / "a.csv").write_text(f"{HEADER}\np,1,end,,\n")
    (folder / "b.jsonl").write_text('{"process":"q","index":1,"kind":"end","run":"own"}\n')
    pq.write_table(pa.Table.from_pylist([{**GOOD_ROW, "process": "r"}]), folder / "c.parquet")
    expected = [("night 7", "p"), ("night 7", "r"), ("own", "q")]
    assert [(event.run, event.process) for event in read_events(folder)] == expected
    rows = table_events(read_table(folder))
    assert sorted((event.run, event.process) for event in rows) == expected


def test_a_folder_is_read_without_hidden_files_and_files_of_other_kinds(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>")
    (tmp_path / "_SUCCESS.csv").write_text("")
    (tmp_path / ".draft.jsonl").write_text("{")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "half.jsonl").write_text("{")
    with pytest.raises(TraceError, match="no trace files"):
        read_events(tmp_path)
    write_jsonl([Event("p", 1, "end")], tmp_path / "a.jsonl")
    assert read_events(tmp_path) == [Event("p", 1, "end")]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_jsonl([Event("p", 1, "end")], path)
    assert len(read_events([path, tmp_path, tmp_path / ".." / tmp_path.name])) == 1


def test_what_is_not_there_or_not_a_trace_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file"):
        read_events(tmp_path / "nowhere")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(TraceError, match="not a trace by its name"):
        read_events(tmp_path / "a.txt")


def test_crash_notes_are_settled_across_files(tmp_path: Path) -> None:
    note = Event("p", 2**62, "crash", note="seen by q", time=5)
    later = Event("p", 2**62, "crash", note="seen by r", time=6)
    write_jsonl([Event("p", 41, "send", "m", "g")], tmp_path / "p.jsonl")
    write_csv([later], tmp_path / "r.csv")
    write_parquet([note], tmp_path)
    crash = Event("p", 42, "crash", note="seen by q", time=5)
    assert read_events(tmp_path) == [Event("p", 41, "send", "m", "g"), crash]
    assert crash in table_events(read_table(tmp_path))
    assert len(read_table(tmp_path)) == 2
