"""One entry of [columns]: a field, a template, a constant, the file's name, or an order of rows.

process = "service"                              a field of theirs
message = "{sender}/{seq}"                       a template
group   = { value = "orders" }                   a constant
process = { file = 'consumer-(\\w+)' }            from the name of the file
index   = { by = "line" }                        made from the order of the rows
"""

from __future__ import annotations

import re
from typing import Any, cast

from ordercast.trace.mapping.keys import COLUMN_KEYS, UNITS
from ordercast.trace.mapping.section import Section
from ordercast.trace.mapping.spec import (
    OWN_PROCESS,
    Column,
    Constant,
    Field,
    FileName,
    Origin,
    RowOrder,
    Template,
)

_ORIGINS = ("field", "value", "file", "by")
_ONLY_OF = {"by": "index", "unit": "time", "split": "members"}
_BEFORE_PROCESS = ("[columns] process", "[columns] kind", "[where]", "[unless]")
_HOLE = re.compile(r"\{([^{}]*)\}")


def parse_column(columns: Section, name: str, value: object) -> Column:
    """Where the column `name` comes from; `value` is what stands in the TOML file."""
    if isinstance(value, str):
        value = {"field": value}
    elif not isinstance(value, dict):
        hint = f"; for a constant write {{ value = {value!r} }}"
        raise columns.wrong(f"{name!r} must be a field of theirs or a table{hint}")
    table = Section(columns.file, f"[columns] {name}", value, COLUMN_KEYS)
    for key, owner in _ONLY_OF.items():
        if key in table.values and name != owner:
            raise table.wrong(f"has {key!r}, which only {owner!r} can have")
    origins = [key for key in _ORIGINS if key in table.values]
    if len(origins) != 1:
        raise table.wrong(f"must have one of {', '.join(_ORIGINS)}, and has {origins or 'none'}")
    return Column(
        name=name,
        origin=_origin(table, origins[0]),
        default=_constant(table, "default") if "default" in table.values else None,
        optional=table.flag("optional") or "default" in table.values,
        unit=table.choice("unit", UNITS, "iso"),
        split=table.text("split", "|"),
    )


def _origin(table: Section, key: str) -> Origin:
    match key:
        case "field":
            text = table.text("field")
            return _template(table, text) if "{" in text else parse_field(table, "field", text)
        case "value":
            return Constant(_constant(table, "value"))
        case "file":
            return FileName(_file_pattern(table))
        case _:
            return RowOrder(cast(Any, table.choice("by", ("line", "time"))))


def parse_field(table: Section, key: str, text: str) -> Field:
    """A path, or several with bars between them."""
    paths = tuple(path.strip() for path in text.split("|"))
    if not all(paths):
        raise table.wrong(f"{key!r} {text!r} lacks the name of a field")
    if OWN_PROCESS in paths and table.place in _BEFORE_PROCESS:
        raise table.wrong(f"cannot have {OWN_PROCESS!r}, which is not known yet there")
    return Field(paths)


def _template(table: Section, text: str) -> Template:
    pieces = _HOLE.split(text)  # text, hole, text, hole, ..., text
    if any(sign in piece for piece in pieces[::2] for sign in "{}"):
        raise table.wrong(f"has the template {text!r}, whose braces do not match")
    holes = tuple(parse_field(table, "field", hole) for hole in pieces[1::2])
    return Template(tuple(pieces[::2]), holes)


def _constant(table: Section, key: str) -> object:
    value = table.values[key]
    plain = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    if not plain and not isinstance(value, list):
        raise table.wrong(f"{key!r} must be a text, a whole number or a list, not {value!r}")
    return value


def _file_pattern(table: Section) -> str:
    pattern = table.text("file")
    try:
        groups = re.compile(pattern).groups
    except re.error as reason:
        raise table.wrong(f"'file' is no regular expression: {reason}") from reason
    if groups != 1:
        raise table.wrong(f"'file' must have one group (...) around the name, not {groups}")
    return pattern
