"""From a record to a value: dotted paths, alternatives, templates, constants, file names.

A path is first looked for as it stands, then piece by piece, so that `resource.service.name` finds
the attribute "service.name" of the resource. A number in a path is a place in a list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ordercast.errors import TraceError
from ordercast.trace.mapping.spec import Constant, Field, FileName, Origin, Template

Record = dict[str, Any]


def origin_values(origin: Origin, records: Sequence[Record], file: Path) -> list[Any]:
    """One value per record, None where the record has none."""
    match origin:
        case Field(paths=paths):
            return field_values(paths, records)
        case Template():
            return _template_values(origin, records)
        case Constant(value=value):
            return [value] * len(records)
        case FileName(pattern=pattern):
            return [_in_file_name(pattern, file)] * len(records)
        case _:
            raise AssertionError(origin)


def field_values(paths: Sequence[str], records: Sequence[Record]) -> list[Any]:
    """The first of these paths that each record has; an empty text is as good as none."""
    values = _path_values(paths[0], records)
    for path in paths[1:]:
        others = _path_values(path, records)
        values = [
            other if value is None or value == "" else value
            for value, other in zip(values, others, strict=True)
        ]
    return values


def _path_values(path: str, records: Sequence[Record]) -> list[Any]:
    if "." not in path:
        return [record.get(path) for record in records]
    return [lookup(record, path) for record in records]


def lookup(value: Any, path: str) -> Any:
    """What stands at `path` inside `value`, None if nothing does."""
    if isinstance(value, list):
        place, _, rest = path.partition(".")
        if not place.isdecimal() or int(place) >= len(value):
            return None
        return lookup(value[int(place)], rest) if rest else value[int(place)]
    if not isinstance(value, dict):
        return None
    if path in value:
        return value[path]
    dot = path.find(".")
    while dot >= 0:
        inner = value.get(path[:dot])
        found = None if inner is None else lookup(inner, path[dot + 1 :])
        if found is not None:
            return found
        dot = path.find(".", dot + 1)
    return None


def _template_values(template: Template, records: Sequence[Record]) -> list[str | None]:
    """The filled template; None where one of its fields is missing."""
    columns = [field_values(field.paths, records) for field in template.fields]
    first, rest = template.texts[0], template.texts[1:]
    filled: list[str | None] = []
    for values in zip(*columns, strict=True):
        if any(value is None or value == "" for value in values):
            filled.append(None)
        else:
            pieces = (f"{plain(value)}{text}" for value, text in zip(values, rest, strict=True))
            filled.append(first + "".join(pieces))
    return filled


def plain(value: Any) -> Any:
    """A value as it is written in a mapping file: true and false as JSON has them."""
    return str(value).lower() if isinstance(value, bool) else value


def _in_file_name(pattern: str, file: Path) -> str:
    found = re.search(pattern, file.name)
    if found is None or not found[1]:
        raise TraceError(file, None, None, f"the name of the file does not match {pattern!r}")
    return found[1]
