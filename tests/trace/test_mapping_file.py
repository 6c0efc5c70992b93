"""The TOML file of a mapping: what it may say, and how a mistake in it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.errors import MappingError
from ordercast.trace.mapping import LogMapping, read_mapping
from ordercast.trace.mapping.spec import Constant, Field, FileName, Group, RowOrder, Template

COLUMNS = """
[columns]
process = "service"
index = { by = "line" }
kind = "event"
message = "id"
group = "topic"
"""
GOOD = 'format = "jsonl"\n' + COLUMNS


def mapping_of(tmp_path: Path, text: str) -> LogMapping:
    file = tmp_path / "mapping.toml"
    file.write_text(text)
    return read_mapping(file)


def told(tmp_path: Path, text: str) -> str:
    """What is said of a bad mapping, without the name of the file before it."""
    with pytest.raises(MappingError) as refusal:
        mapping_of(tmp_path, text)
    assert "\n" not in str(refusal.value).strip()
    return str(refusal.value).removeprefix(f"{tmp_path / 'mapping.toml'}: ")


def test_a_column_can_come_from_five_places(tmp_path: Path) -> None:
    text = """
    format = "jsonl"
    [columns]
    process = { file = 'app-(\\w+)' }
    index = { by = "time" }
    time = { field = "t", unit = "ms" }
    kind = "event"
    message = "{from | by}/{seq}"
    group = { value = "orders" }
    """
    [source] = mapping_of(tmp_path, text).sources
    origins = {column.name: column.origin for column in source.columns}
    assert origins == {
        "process": FileName("app-(\\w+)"),
        "index": RowOrder("time"),
        "time": Field(("t",)),
        "kind": Field(("event",)),
        "message": Template(("", "/", ""), (Field(("from", "by")), Field(("seq",)))),
        "group": Constant("orders"),
    }


def test_groups_and_complete_logs_are_declared(tmp_path: Path) -> None:
    group = '[[group]]\nname = "g"\nmembers = ["a", "b"]\norder = "fifo"\nscope = "group"\n'
    mapping = mapping_of(tmp_path, 'complete = ["a"]\n' + GOOD + group)
    assert mapping.groups == (Group("g", ("a", "b"), "fifo", None, "group"),)
    assert mapping.complete == {"a"}
    assert mapping_of(tmp_path, GOOD).complete is False


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("message", "mesage"), "[columns] has the unknown key 'mesage'; did you mean"),
        ("fromat = 'csv'\n" + COLUMNS, "has the unknown key 'fromat'; did you mean 'format'?"),
        (COLUMNS, "the mapping needs 'format': one of jsonl, json, csv, text, otlp, parquet"),
        ('format = "jsnol"' + COLUMNS, "'format' cannot be 'jsnol'; did you mean 'jsonl'?"),
        ('format = "jsonl"', "needs 'columns': a table [columns]"),
        (GOOD.replace('index = { by = "line" }', ""), "needs 'index' in [columns]: a number"),
        (GOOD.replace('group = "topic"', ""), "needs 'group' in [columns]"),
        (GOOD + "complete = true", "'complete' at the top, above the first [table]"),
        (GOOD.replace('"line"', '"lines"'), "[columns] index 'by' cannot be 'lines'; did you mean"),
        (GOOD.replace('"line"', '"time"'), 'index = { by = "time" }, which needs \'time\''),
        (GOOD.replace('"id"', "5"), "for a constant write { value = 5 }"),
        (GOOD.replace('"id"', "{}"), "must have one of field, value, file, by"),
        (GOOD.replace('"id"', '"{a}/{b"'), "the template '{a}/{b', whose braces do not match"),
        (GOOD.replace('"id"', '"a|"'), "'a|' lacks the name of a field"),
        (GOOD.replace('"id"', '{ by = "line" }'), "has 'by', which only 'index' can have"),
        (GOOD.replace('"id"', '{ feld = "x" }'), "unknown key 'feld'; did you mean 'field'?"),
        (GOOD.replace('"service"', "{ file = 'log' }"), "must have one group (...)"),
        (GOOD.replace('"service"', "{ file = '(' }"), "'file' is no regular expression"),
        (GOOD.replace('"service"', '"@process"'), "cannot have '@process'"),
        (GOOD.replace('"event"', '{ value = "sned" }'), "the kind 'sned'; did you mean 'send'?"),
        (GOOD + '[kinds]\nGOT = "delivr"', "'GOT' cannot be 'delivr'; did you mean 'deliver'?"),
        (GOOD + '[kinds]\n"*" = "send"', "'*' (all other words) can only be 'ignore'"),
        (GOOD + '[kinds]\nV = "view"', "gives rows of kind 'view', which need 'view' in [columns]"),
        (GOOD + "[where]\nx = 1.5", "'x' must be a value or a list of values, not 1.5"),
        (GOOD + "[[group]]\nmembers = ['a']", "[[group]] number 1 needs 'name'"),
        (GOOD + "[group]\nname = 'a'", "has [group] where [[group]] must stand"),
        (GOOD + "[[group]]\nname = 'a'\n[[group]]\nname = 'a'", "declares the group 'a'"),
        (GOOD + "[[group]]\nname = 'a'\nscope = 'all'", "'scope' cannot be 'all'"),
        (GOOD + "[[group]]\nname = 'a'\norder = 'fifoo'", "'order' cannot be 'fifoo'"),
        (GOOD + "[[group]]\nname = 'a'\nmembers = 'a,b'", "'members' must be a list of texts"),
        (GOOD + "[[source]]\nformat = 'csv'", "has [[source]], so 'format' must stand in one"),
        ("delimiter = ';'\n" + GOOD, "'delimiter', which means nothing where format = 'jsonl'"),
        ('format = "csv"\ndelimiter = "||"' + COLUMNS, "must be one character, not '||'"),
        ('format = "csv"\nheader = false' + COLUMNS, "'header' must be true or the list"),
        ('format = "csv"\nencoding = "utf9"' + COLUMNS, "'encoding' 'utf9' is not known"),
        ('format = "text"' + COLUMNS, "needs 'pattern': a regular expression with named groups"),
        ('format = "text"\npattern = "(a"' + COLUMNS, "'pattern' is no regular expression"),
        ('format = "text"\npattern = "a(b)"' + COLUMNS, "'pattern' has no named group"),
        ('format = "text"\npattern = "(?P<evnt>.)"' + COLUMNS, "'pattern' has no group 'service'"),
        ("format = jsonl", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_in_one_sentence_that_names_it(
    tmp_path: Path, text: str, says: str
) -> None:
    assert says in told(tmp_path, text)


def test_a_mapping_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match=r"nowhere\.toml: cannot be read: No such file"):
        read_mapping(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\x89PNG\xff\x00")
    with pytest.raises(MappingError, match="not text in UTF-8"):
        read_mapping(tmp_path / "binary.toml")


def test_a_byte_order_mark_and_crlf_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "mapping.toml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_mapping(file).sources == mapping_of(tmp_path, GOOD).sources


def test_a_mapping_without_kinds_needs_all_five_columns(tmp_path: Path) -> None:
    only_sends = GOOD.replace('message = "id"\n', "")
    assert "needs 'message' in [columns]" in told(tmp_path, only_sends)
    ends = only_sends.replace('group = "topic"\n', "") + '[kinds]\nSTOP = "end"'
    assert mapping_of(tmp_path, ends).sources[0].kinds == {"STOP": "end"}
