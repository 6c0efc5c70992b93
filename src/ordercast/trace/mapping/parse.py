"""From a TOML file to a `LogMapping`. Everything that can be refused here is refused here."""

from __future__ import annotations

import codecs
import re
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, cast

from ordercast.core.declaration import ORDERS
from ordercast.errors import MappingError
from ordercast.trace.mapping.columns import parse_column, parse_field
from ordercast.trace.mapping.fields import written
from ordercast.trace.mapping.keys import (
    COLUMN_NAMES,
    FORMATS,
    GROUP_KEYS,
    SOURCE_KEYS,
    WHOLE_KEYS,
)
from ordercast.trace.mapping.section import Section, said_nearest
from ordercast.trace.mapping.spec import (
    ANY,
    IGNORE,
    OWN_PROCESS,
    Column,
    Constant,
    Filter,
    Group,
    LogMapping,
    RowOrder,
    Source,
)
from ordercast.trace.rows import NEEDED_COLUMNS
from ordercast.trace.schema import KINDS, REQUIRED_COLUMNS

FILES = {
    "jsonl": ("*.jsonl", "*.ndjson", "*.json", "*.log"),
    "json": ("*.json",),
    "csv": ("*.csv", "*.tsv", "*.txt"),
    "text": ("*.log", "*.txt"),
    "otlp": ("*.json", "*.jsonl"),
    "parquet": ("*.parquet",),
}
_ONLY_OF = {
    "encoding": ("jsonl", "csv", "text"),
    "delimiter": ("csv",),
    "quote": ("csv",),
    "header": ("csv",),
    "pattern": ("text",),
    "unmatched": ("text",),
}


def read_mapping(file: Path | str) -> LogMapping:
    """Read a mapping file. Raises `MappingError` with what is wrong and what would be right."""
    file = Path(file)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as reason:
        raise MappingError(f"{file}: cannot be read: {reason.strerror}") from reason
    except UnicodeDecodeError as reason:
        raise MappingError(f"{file}: not a TOML file: it is not text in UTF-8") from reason
    except tomllib.TOMLDecodeError as reason:
        raise MappingError(f"{file}: not valid TOML: {reason}") from reason
    whole = Section(file, "", values, {**WHOLE_KEYS, **SOURCE_KEYS})
    return LogMapping(
        file=str(file),
        sources=_sources(whole),
        groups=_groups(whole),
        complete=_complete(whole),
    )


def _sources(whole: Section) -> tuple[Source, ...]:
    own = {key: value for key, value in whole.values.items() if key in SOURCE_KEYS}
    tables = whole.tables("source")
    if not tables:
        return (_source(Section(whole.file, "", own)),)
    if own:
        raise whole.wrong(f"has [[source]], so {next(iter(own))!r} must stand in one of them")
    return tuple(
        _source(Section(whole.file, f"[[source]] number {number}", one, SOURCE_KEYS))
        for number, one in enumerate(tables, start=1)
    )


def _source(table: Section) -> Source:
    table.needed("format", f"one of {', '.join(FORMATS)}")
    form = cast(Any, table.choice("format", FORMATS))
    for key, formats in _ONLY_OF.items():
        if key in table.values and form not in formats:
            raise table.wrong(f"has {key!r}, which means nothing where format = {form!r}")
    columns = _columns(table)
    kinds = _kinds(table)
    _check_columns(table, columns, kinds)
    return Source(
        format=form,
        files=_files(table) or FILES[form],
        columns=columns,
        kinds=kinds,
        filters=(*_filters(table, "where", keep=True), *_filters(table, "unless", keep=False)),
        encoding=_encoding(table),
        delimiter=table.character("delimiter", ","),
        quote=table.character("quote", '"'),
        header=_header(table),
        pattern=_pattern(table, columns) if form == "text" else "",
        unmatched=cast(Any, table.choice("unmatched", ("refuse", "ignore"), "refuse")),
    )


def _files(table: Section) -> tuple[str, ...]:
    if isinstance(table.values.get("files"), str):
        return (table.text("files"),)
    return table.names("files")


def _columns(table: Section) -> tuple[Column, ...]:
    values = table.needed("columns", "a table [columns] from our columns to their fields")
    columns = Section(table.file, "[columns]", values, COLUMN_NAMES)
    return tuple(parse_column(columns, name, value) for name, value in columns.values.items())


def _check_columns(
    table: Section, columns: tuple[Column, ...], kinds: dict[str, str] | None
) -> None:
    """Refuse a mapping that gives rows which lack what their kind needs."""
    given = {column.name: column for column in columns}
    _need(table, given, ("process", "index", "kind"))
    made = _kinds_made(table, given["kind"], kinds)
    if made is None:
        _need(table, given, REQUIRED_COLUMNS)
    for kind in made or ():
        for name in NEEDED_COLUMNS.get(kind, ()):
            if name not in given:
                raise table.wrong(f"gives rows of kind {kind!r}, which need {name!r} in [columns]")
    if given["index"].origin == RowOrder("time") and "time" not in given:
        raise table.wrong("has index = { by = \"time\" }, which needs 'time' in [columns]")


def _need(table: Section, given: Collection[str], names: Iterable[str]) -> None:
    for name in names:
        if name not in given:
            raise table.wrong(f"needs {name!r} in [columns]{_how(name)}")


def _how(name: str) -> str:
    if name != "index":
        return ""
    return ': a number of theirs, { by = "line" } or { by = "time" }'


def _kinds_made(table: Section, kind: Column, kinds: dict[str, str] | None) -> list[str] | None:
    """The kinds that rows can get, None if that is up to the rows."""
    if not isinstance(kind.origin, Constant):
        return None if kinds is None else sorted(set(kinds.values()) - {IGNORE})
    word = str(kind.origin.value)
    known = kinds or {one: one for one in KINDS}
    if word not in known:
        raise table.wrong(f"gives every row the kind {word!r}{said_nearest(word, known)}")
    return [known[word]]


def _kinds(table: Section) -> dict[str, str] | None:
    if "kinds" not in table.values:
        return None
    kinds = Section(table.file, "[kinds]", table.values["kinds"])
    for word in kinds.values:
        kinds.choice(word, (*KINDS, IGNORE))
    if kinds.values.get(ANY, IGNORE) != IGNORE:
        raise kinds.wrong(f"{ANY!r} (all other words) can only be {IGNORE!r}")
    return {word: str(kind) for word, kind in kinds.values.items()}


def _filters(table: Section, key: str, *, keep: bool) -> list[Filter]:
    filters = Section(table.file, f"[{key}]", table.values.get(key, {}))
    found = []
    for field, wanted in filters.values.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        if not values or not all(isinstance(value, str | int) for value in values):
            raise filters.wrong(f"{field!r} must be a value or a list of values, not {wanted!r}")
        found.append(
            Filter(parse_field(filters, field, field), frozenset(map(written, values)), keep)
        )
    return found


def _encoding(table: Section) -> str:
    name = table.text("encoding", "utf-8")
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise table.wrong(f"'encoding' {name!r} is not known; for example utf-8, latin-1") from None


def _header(table: Section) -> tuple[str, ...]:
    if table.values.get("header", True) is True:
        return ()
    names = table.names("header") if table.values["header"] is not False else ()
    if not names or len(set(names)) < len(names):
        raise table.wrong("'header' must be true or the list of the columns' names, each once")
    return names


def _pattern(table: Section, columns: tuple[Column, ...]) -> str:
    table.needed("pattern", "a regular expression with named groups such as (?P<time>...)")
    pattern = table.text("pattern")
    try:
        names = re.compile(pattern).groupindex
    except re.error as reason:
        raise table.wrong(f"'pattern' is no regular expression: {reason}") from reason
    if not names:
        raise table.wrong("'pattern' has no named group; write (?P<name>...) around each field")
    for field in (field for column in columns for field in column.fields):
        if not set(field.paths) & {*names, OWN_PROCESS}:
            hint = said_nearest(field.paths[0], names)
            raise table.wrong(f"'pattern' has no group {field.label!r}{hint}")
    return pattern


def _groups(whole: Section) -> tuple[Group, ...]:
    found = []
    for number, one in enumerate(whole.tables("group"), start=1):
        table = Section(whole.file, f"[[group]] number {number}", one, GROUP_KEYS)
        table.needed("name", "what the group is called in the rows")
        found.append(
            Group(
                name=table.text("name"),
                members=table.names("members") or None,
                order=table.choice("order", ORDERS) if "order" in table.values else None,
                protocol=table.text("protocol") or None,
                scope=table.choice("scope", ("domain", "group"), "domain"),
            )
        )
    names = [group.name for group in found]
    for name in names:
        if names.count(name) > 1:
            raise whole.wrong(f"declares the group {name!r} twice")
    return tuple(found)


def _complete(whole: Section) -> bool | frozenset[str]:
    value = whole.values.get("complete", False)
    return value if isinstance(value, bool) else frozenset(whole.names("complete"))
