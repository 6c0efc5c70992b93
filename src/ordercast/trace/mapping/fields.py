"""From a batch of rows to values: fields, alternatives, templates, constants, file names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ordercast.errors import TraceError
from ordercast.trace.mapping.batch import Batch
from ordercast.trace.mapping.spec import Constant, Field, FileName, Origin, Template


def origin_values(origin: Origin, batch: Batch, file: Path) -> list[Any]:
    """One value per row, None where the row has none."""
    match origin:
        case Field(paths=paths):
            return field_values(paths, batch)
        case Template():
            return _template_values(origin, batch)
        case Constant(value=value):
            return [value] * len(batch)
        case FileName(pattern=pattern):
            return [_in_file_name(pattern, file)] * len(batch)
        case _:
            raise AssertionError(origin)


def field_values(paths: Sequence[str], batch: Batch) -> list[Any]:
    """The first of these paths that each row has; an empty text is as good as none."""
    values = batch.values(paths[0])
    for path in paths[1:]:
        values = [
            other if is_absent(value) else value
            for value, other in zip(values, batch.values(path), strict=True)
        ]
    return values


def is_absent(value: Any) -> bool:
    return value is None or value == ""


def written(value: Any) -> str:
    """A value as one writes it in a mapping file: true and false as TOML and JSON have them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _template_values(template: Template, batch: Batch) -> list[str | None]:
    """The filled template; None where one of its fields is missing."""
    columns = [field_values(field.paths, batch) for field in template.fields]
    first, rest = template.texts[0], template.texts[1:]
    filled: list[str | None] = []
    for values in zip(*columns, strict=True):
        if any(map(is_absent, values)):
            filled.append(None)
        else:
            pieces = (written(value) + text for value, text in zip(values, rest, strict=True))
            filled.append(first + "".join(pieces))
    return filled


def _in_file_name(pattern: str, file: Path) -> str:
    found = re.search(pattern, file.name)
    if found is None or not found[1]:
        raise TraceError(file, None, None, f"the name of the file does not match {pattern!r}")
    return found[1]
