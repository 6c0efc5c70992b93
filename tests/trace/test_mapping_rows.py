"""From foreign rows to events: every format, what is left out, what is refused and how."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ordercast.errors import TraceError
from ordercast.trace.mapping import read_mapping
from ordercast.trace.mapping.reading import mapped_events
from ordercast.trace.mapping.records import LONGEST_CELL
from ordercast.trace.read import read_events, read_table
from ordercast.trace.schema import Event
from ordercast.trace.tables import table_events

COLUMNS = """
[columns]
process = "who"
index = { by = "line" }
kind = "what"
message = "id"
group = "topic"
"""
KINDS = '[kinds]\nPUB = "send"\nGOT = "deliver"\nPING = "ignore"\n'
JSONL = 'format = "jsonl"\n' + COLUMNS + KINDS
PUB = {"who": "p", "what": "PUB", "id": "m1", "topic": "g"}
GOT = {"who": "q", "what": "GOT", "id": "m1", "topic": "g"}


def write(tmp_path: Path, mapping: str, content: str | bytes, name: str = "a.jsonl") -> Path:
    (tmp_path / "mapping.toml").write_text(mapping)
    raw = content.encode() if isinstance(content, str) else content
    (tmp_path / name).write_bytes(raw)
    return tmp_path / name


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def events(
    tmp_path: Path, mapping: str, content: str | bytes, name: str = "a.jsonl"
) -> list[Event]:
    file = write(tmp_path, mapping, content, name)
    return read_events(file, read_mapping(tmp_path / "mapping.toml"))


def refusal(
    tmp_path: Path, mapping: str, content: str | bytes, name: str = "a.jsonl"
) -> TraceError:
    with pytest.raises(TraceError) as refused:
        events(tmp_path, mapping, content, name)
    assert refused.value.file == str(tmp_path / name)
    return refused.value


SENT = Event("p", 1, "send", "m1", "g")
DELIVERED = Event("q", 2, "deliver", "m1", "g")


# Formats.


def test_json_lines_with_a_mark_crlf_and_blank_lines(tmp_path: Path) -> None:
    content = "\ufeff" + lines(PUB).replace("\n", "\r\n") + "\r\n" + lines(GOT)
    assert events(tmp_path, JSONL, content) == [SENT, DELIVERED]


def test_one_json_array(tmp_path: Path) -> None:
    mapping = JSONL.replace("jsonl", "json")
    assert events(tmp_path, mapping, json.dumps([PUB, GOT]), "a.json") == [SENT, DELIVERED]
    assert "must be an object" in str(refusal(tmp_path, mapping, "[1]", "a.json"))
    assert 'format = "jsonl"' in str(refusal(tmp_path, mapping, lines(PUB, GOT), "a.json"))


CSV = 'format = "csv"\ndelimiter = ";"\nquote = "\'"\n' + COLUMNS + KINDS
TABLE = "id;topic;who;what;rest\nm1;g;p;PUB;'a;b'\n\nm1;g;q;GOT;'two\nlines'\nm1;g;r;GOT;\n"


def test_separated_values_with_other_signs(tmp_path: Path) -> None:
    third = Event("r", 3, "deliver", "m1", "g")
    assert events(tmp_path, CSV, "\ufeff" + TABLE, "a.csv") == [SENT, DELIVERED, third]


def test_separated_values_without_a_header_in_another_encoding(tmp_path: Path) -> None:
    names = 'header = ["id", "topic", "who", "what", "rest"]\nencoding = "latin-1"\n'
    content = TABLE.partition("\n")[2].replace("m1;g", "m1;Zürich").encode("latin-1")
    found = events(tmp_path, names + CSV, content, "a.csv")
    assert [event.group for event in found] == ["Zürich"] * 3
    wrong = refusal(tmp_path, names.replace("latin-1", "utf-8") + CSV, content, "a.csv")
    assert wrong.reason == "not text in utf-8: byte 0xfc; see the key 'encoding'"


def test_the_line_of_a_refused_row_counts_the_lines_inside_cells(tmp_path: Path) -> None:
    refused = refusal(tmp_path, CSV, TABLE + "m1;g;s;WHAT;\n", "a.csv")
    assert (refused.line, refused.column) == (7, "what")
    short = refusal(tmp_path, CSV, TABLE + "m1;g;s\n", "a.csv")
    assert (short.line, short.reason) == (7, "3 cells where the header has 5")


def test_text_by_a_pattern_and_the_name_of_the_file(tmp_path: Path) -> None:
    mapping = (
        """
    format = "text"
    pattern = '(?P<what>PUB|GOT) (?P<topic>\\w+) (?P<from>\\w*):(?P<n>\\d+)$'
    unmatched = "ignore"
    [columns]
    process = { file = '-(\\w+)\\.log' }
    index = { by = "line" }
    kind = "what"
    message = "{from | @process}:{n}"
    group = "topic"
    """
        + KINDS
    )
    content = "hello\nINFO PUB g :1\r\n\n  at x.y(Z)\nINFO GOT g q:7\n"
    said: list[str] = []
    file = write(tmp_path, mapping, content, "app-p.log")
    found = mapped_events(file, read_mapping(tmp_path / "mapping.toml"), said.append)
    assert found == [Event("p", 1, "send", "p:1", "g"), Event("p", 2, "deliver", "q:7", "g")]
    assert said == ["2 of 2 rows are events (1 send, 1 deliver); 2 lines do not match the pattern"]
    write(tmp_path, mapping, "PUB g :1\nhello\n", "app-p.log")
    mapped_events(file, read_mapping(tmp_path / "mapping.toml"), said.append)
    assert said[-1] == "1 of 1 rows are events (1 send); 1 line does not match the pattern"
    strict = mapping.replace('unmatched = "ignore"', "")
    refused = refusal(tmp_path, strict, content, "app-p.log")
    assert (refused.line, "does not match the pattern: 'hello'" in refused.reason) == (1, True)
    assert "does not match '-(" in refusal(tmp_path, mapping, content, "x.log").reason


ONE = {"key": "y", "value": {"intValue": 1}}
SPAN = {
    "spanId": "s1", "kind": 4, "startTimeUnixNano": "5",
    "attributes": [
        {"key": "messaging.destination.name", "value": {"stringValue": "g"}},
        {"key": "messaging.batch.message_count", "value": {"intValue": "3"}},
        {"key": "to", "value": {"arrayValue": {"values": [{"stringValue": "q"}]}}},
        {"key": "x", "value": {"kvlistValue": {"values": [ONE]}}},
    ],
}  # fmt: skip
OTLP = """
format = "otlp"
[columns]
process = "resource.service.name"
index = { by = "time" }
time = { field = "startTimeUnixNano", unit = "ns" }
kind = "kind"
message = "links.0.spanId | spanId"
group = "attributes.messaging.destination.name"
size = "attributes.messaging.batch.message_count"
members = "attributes.to"
note = "attributes.x.y"
[kinds]
producer = "send"
consumer = "deliver"
server = "ignore"
"""


def export(*spans: dict[str, Any], service: str = "p") -> dict[str, Any]:
    named = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": named, "scopeSpans": [{"spans": list(spans)}]}]}


def test_spans_in_otlp_json(tmp_path: Path) -> None:
    consumed = {**SPAN, "spanId": "s2", "kind": "SPAN_KIND_CONSUMER", "links": [{"spanId": "s1"}],
                "startTimeUnixNano": "9"}  # fmt: skip
    early = {**SPAN, "spanId": "s0", "startTimeUnixNano": "4"}
    served = {"spanId": "s3", "kind": 2}
    content = lines(export(SPAN, served, early), export(consumed, service="q"))
    found = events(tmp_path, OTLP, content)
    assert [(e.process, e.index, e.kind, e.message, e.group) for e in found] == [
        ("p", 4, "send", "s0", "g"), ("p", 5, "send", "s1", "g"), ("q", 9, "deliver", "s1", "g"),
    ]  # fmt: skip
    assert {(e.size, e.members, e.note) for e in found} == {(3, ("q",), "1")}
    metrics = refusal(tmp_path, OTLP, lines({"resourceMetrics": []}))
    assert "it has resourceMetrics where 'resourceSpans' must be" in metrics.reason
    broken = refusal(tmp_path, OTLP, lines({"resourceSpans": [1]}))
    assert "not laid out as OTLP JSON" in broken.reason
    for kind in (-1, 6):
        strange = refusal(tmp_path, OTLP, lines(export({**SPAN, "kind": kind})))
        assert f"a span of kind {kind}; there are 0 to 5" in strange.reason


def test_parquet_with_other_names(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{**PUB, "at": 10**9 + 7, "x": {"n": 4}}, {**GOT, "at": None, "x": {"n": 5}}]
    table = pa.Table.from_pylist(rows)
    stamps = table["at"].cast(pa.timestamp("ns"))
    pq.write_table(table.set_column(4, "at", stamps), tmp_path / "a.parquet")
    raw = (tmp_path / "a.parquet").read_bytes()
    mapping = JSONL.replace("jsonl", "parquet").replace("[kinds]", 'time="at"\nseq="x.n"\n[kinds]')
    assert events(tmp_path, mapping, raw, "a.parquet") == [
        Event("p", 1, "send", "m1", "g", time=10**9 + 7, seq=4),
        Event("q", 2, "deliver", "m1", "g", seq=5),
    ]
    refused = refusal(tmp_path, mapping.replace('"id"', '"idd"'), raw, "a.parquet")
    assert (refused.column, refused.reason) == ("idd", "no such column; did you mean 'id'?")
    assert "not readable as Parquet" in refusal(tmp_path, mapping, b"PAR0", "a.parquet").reason


def test_the_table_has_the_same_events(tmp_path: Path) -> None:
    file = write(tmp_path, JSONL, lines(PUB, GOT))
    mapping = read_mapping(tmp_path / "mapping.toml")
    assert table_events(read_table(file, mapping)) == read_events(file, mapping)


# What a value may be.


def with_columns(**columns: str) -> str:
    extra = "".join(f"{name} = {value}\n" for name, value in columns.items())
    return JSONL.replace("[kinds]", extra + "[kinds]")


@pytest.mark.parametrize(
    ("column", "value", "means"),
    [
        ('"t"', "2026-11-12 14:00:05.189+00", 1794492005189000000),
        ('"t"', "2026-11-12T15:00:05,189+01:00", 1794492005189000000),
        ('{ field = "t", unit = "s" }', 1794492005.189001, 1794492005189001000),
        ('{ field = "t", unit = "ms" }', "1794492005189", 1794492005189000000),
        ('{ field = "t", unit = "us" }', 1794492005189001, 1794492005189001000),
        ('{ field = "t", unit = "ns" }', "1794492005189001002", 1794492005189001002),
    ],
)
def test_times_in_every_unit(tmp_path: Path, column: str, value: Any, means: int) -> None:
    [event] = events(tmp_path, with_columns(time=column), lines({**PUB, "t": value}))
    assert event.time == means


@pytest.mark.parametrize(
    ("columns", "row", "column", "says"),
    [
        ({"time": '"t"'}, {"t": 17}, "t", "ISO timestamp, not 17; for a number say its unit"),
        ({"time": '"t"'}, {"t": "17"}, "t", "ISO timestamp, not 17; for a number say its unit"),
        ({"time": '"t"'}, {"t": "1.5e9"}, "t", "not 1.5e9; for a number say its unit"),
        ({"time": '"t"'}, {"t": "noon"}, "t", "'noon': expected nanoseconds or an ISO timestamp"),
        ({"time": '{ field = "t", unit = "s" }'}, {"t": "1s"}, "t", "a number of s, not '1s'"),
        ({"time": '{ field = "t", unit = "s" }'}, {"t": "nan"}, "t", "a number of s, not 'nan'"),
        ({"time": '{ field = "t", unit = "s" }'}, {"t": "1e999999"}, "t", "does not fit 64 bits"),
        ({"time": '{ field = "t", unit = "s" }'}, {"t": 1e10}, "t", "does not fit 64 bits"),
        ({"seq": '"n"'}, {"n": "1.5"}, "n", "must be a whole number, not '1.5'"),
        ({"seq": '"n"'}, {"n": 2**63}, "n", "does not fit 64 bits"),
        ({"seq": '"n"'}, {"n": True}, "n", "must be a whole number, not True"),
        ({"note": '"n"'}, {"n": 1.5}, "n", "must be a text or a whole number, not 1.5"),
        ({"note": '"n"'}, {"n": {"a": 1}}, "n", "must be a text or a whole number, not {'a': 1}"),
        ({"members": '"n"'}, {"n": "[a"}, "n", "bad JSON array"),
        ({"members": '"n"'}, {"n": [1]}, "n", "must be a list of names, not [1]"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_their_name(
    tmp_path: Path, columns: dict[str, str], row: dict[str, Any], column: str, says: str
) -> None:
    refused = refusal(tmp_path, with_columns(**columns), lines(PUB, {**GOT, **row}))
    assert (refused.line, refused.column) == (2, column)
    assert says in refused.reason


def test_numbers_are_fine_names_and_texts_fine_numbers(tmp_path: Path) -> None:
    mapping = with_columns(seq='"n"', members='{ field = "all", split = "," }')
    row = {**PUB, "id": 17, "n": "5", "all": "a, b"}
    [event] = events(tmp_path, mapping, lines(row))
    assert (event.message, event.seq, event.members) == ("17", 5, ("a", "b"))


def test_a_default_stands_in_for_what_is_missing(tmp_path: Path) -> None:
    mapping = JSONL.replace('"topic"', '{ field = "topic", default = "all" }')
    found = events(tmp_path, mapping, lines({**PUB, "topic": ""}, GOT))
    assert [event.group for event in found] == ["all", "g"]


def test_a_dotted_path_finds_nested_fields_lists_and_dotted_names(tmp_path: Path) -> None:
    mapping = JSONL.replace('"id"', '"a.b.c | d.1.e | f.g"')
    values = [{"a": {"b.c": "x"}}, {"a.b": {"c": "w"}}, {"d": [{}, {"e": "y"}]}, {"f.g": "z"}]
    found = events(tmp_path, mapping, lines(*(PUB | value for value in values)))
    assert [event.message for event in found] == ["x", "w", "y", "z"]


def test_their_own_declarations_of_groups_belong_to_nobody(tmp_path: Path) -> None:
    mapping = with_columns(members='{ field = "all", optional = true }') + 'GROUP = "group"\n'
    row = {"what": "GROUP", "topic": "g", "all": ["p", "q"]}
    wanted = [Event(None, None, "group", group="g", members=("p", "q")), SENT]
    assert events(tmp_path, mapping, lines(PUB, row)) == wanted
    assert events(tmp_path, mapping, lines(PUB, row | {"who": "p"})) == wanted


# What is refused, and what is left out.


def test_a_word_that_is_not_in_kinds_is_refused(tmp_path: Path) -> None:
    refused = refusal(tmp_path, JSONL, lines(PUB, {**GOT, "what": "LOST"}))
    assert (refused.line, refused.column) == (2, "what")
    assert refused.reason.startswith("'LOST' is not in [kinds]; say there which kind it is")
    assert "every row needs it as `kind`" in refusal(tmp_path, JSONL, lines({"who": "p"})).reason


def test_without_kinds_their_words_must_be_ours(tmp_path: Path) -> None:
    mapping = 'format = "jsonl"\n' + COLUMNS
    assert events(tmp_path, mapping, lines({**PUB, "what": "send"})) == [SENT]
    assert "'PUB' is not in [kinds]" in refusal(tmp_path, mapping, lines(PUB)).reason


def test_rows_that_are_left_out_are_counted(tmp_path: Path) -> None:
    mapping = JSONL + '"*" = "ignore"\n[where]\nenv = ["prod", 1]\n[unless]\ntest = true\n'
    live = {"env": "prod", "test": False}
    rows = [PUB | live, GOT | live, PUB, GOT | {"env": 1, "test": True}, {"what": "PING"} | live,
            {"what": "UP"} | live, {"what": "UP"} | live]  # fmt: skip
    said: list[str] = []
    file = write(tmp_path, mapping, lines(*rows))
    found = mapped_events(file, read_mapping(tmp_path / "mapping.toml"), said.append)
    assert found == [SENT, DELIVERED]
    assert said == [
        "2 of 7 rows are events (1 send, 1 deliver); 3 ignored (2 'UP', 1 'PING'); "
        "2 left out by [where] or [unless]"
    ]


@pytest.mark.parametrize(
    ("row", "column", "says"),
    [
        ({"id": None}, "id", "missing; a row of kind 'deliver' needs it as `message`; it is empty"),
        ({"id": ""}, "id", "it is empty here"),
        ({"who": ""}, "who", "a row of kind 'deliver' needs it as `process`"),
    ],
)
def test_a_row_that_lacks_what_its_kind_needs_is_refused(
    tmp_path: Path, row: dict[str, Any], column: str, says: str
) -> None:
    refused = refusal(tmp_path, JSONL, lines(PUB, {**GOT, **row}))
    assert (refused.line, refused.column) == (2, column)
    assert says in refused.reason


def test_a_missing_field_is_told_with_the_nearest_that_the_row_has(tmp_path: Path) -> None:
    row = {"who": "p", "what": "PUB", "ID": "m1", "topic": "g"}
    refused = refusal(tmp_path, JSONL, lines(row))
    assert refused.column == "id"
    assert refused.reason.endswith("did you mean 'ID'?")
    template = JSONL.replace('"id"', '"{who}-{ID}-{n}"')
    assert refusal(tmp_path, template, lines(row)).column == "n"


def test_a_field_that_no_row_has_is_a_slip_of_the_pen(tmp_path: Path) -> None:
    refused = refusal(tmp_path, with_columns(sender='"whom"'), lines(PUB, GOT))
    assert (refused.line, refused.column) == (None, "whom")
    assert "no row has this field" in refused.reason
    assert refused.reason.endswith("did you mean 'who'?")
    allowed = with_columns(sender='{ field = "whom", optional = true }')
    assert events(tmp_path, allowed, lines(PUB, GOT)) == [SENT, DELIVERED]
    filtered = refusal(tmp_path, JSONL + "[where]\nenvir = 1", lines({**PUB, "env": 1}))
    assert filtered.column == "envir"


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ('{"who": "p"\n', 1, "bad JSON"),
        (lines(PUB) + "[1]\n", 2, "must be a JSON object, not an array"),
        (lines(PUB) + "17\n", 2, "must be a JSON object, not 17"),
        (lines(PUB).strip() + lines(GOT), 1, "bad JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", 1, "bad JSON"),
        ("[" * 100_000, 1, "bad JSON"),
    ],
)
def test_a_line_that_is_no_object_is_refused(
    tmp_path: Path, content: str | bytes, line: int, says: str
) -> None:
    refused = refusal(tmp_path, JSONL, content)
    assert refused.line == line
    assert says in refused.reason


def test_a_wrong_delimiter_and_an_empty_table_are_told_as_what_they_are(tmp_path: Path) -> None:
    commas = CSV.replace('";"', '","')
    assert "is 'delimiter' right?" in refusal(tmp_path, commas, TABLE, "a.csv").reason
    assert "the file is empty" in refusal(tmp_path, CSV, "", "a.csv").reason
    typo = refusal(tmp_path, CSV.replace('"topic"', '"topics"'), TABLE, "a.csv")
    assert (typo.column, typo.reason) == ("topics", "no such column; did you mean 'topic'?")
    assert "occurs twice" in refusal(tmp_path, CSV, "id;id\n", "a.csv").reason
    assert "bad CSV" in refusal(tmp_path, CSV, TABLE + "'open\n", "a.csv").reason


def test_an_empty_log_has_no_events(tmp_path: Path) -> None:
    assert events(tmp_path, JSONL, "") == []


def test_long_cells_are_fine_up_to_a_limit(tmp_path: Path) -> None:
    long = TABLE + "m1;g;s;GOT;" + "x" * 200_000 + "\n"
    assert len(events(tmp_path, CSV, long, "a.csv")) == 4
    too_long = TABLE + "m1;g;s;GOT;" + "x" * (LONGEST_CELL + 1) + "\n"
    assert "field larger than field limit" in refusal(tmp_path, CSV, too_long, "a.csv").reason
