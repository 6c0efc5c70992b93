"""How a row that cannot be an event is refused: file, line, their field, and what is wrong."""

from __future__ import annotations

from pathlib import Path

from ordercast.errors import TraceError
from ordercast.trace.mapping.batch import Batch
from ordercast.trace.mapping.fields import field_values, is_absent
from ordercast.trace.mapping.section import said_nearest
from ordercast.trace.mapping.spec import IGNORE, Column, Constant
from ordercast.trace.schema import KINDS


class Refusals:
    """The refusals of one file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def bad_value(self, column: Column, batch: Batch, place: int, reason: str) -> TraceError:
        """A value has the wrong type."""
        label = ", ".join(field.label for field in column.fields) or column.name
        if isinstance(column.origin, Constant):
            reason = f"{reason}; it is a constant of the mapping"
        return TraceError(self.file, batch.lines[place], label, reason)

    def missing(self, column: Column, batch: Batch, place: int, needs: str) -> TraceError:
        """A value is needed and there is none; of a template, its first missing field is named."""
        row = batch.chosen([place])
        for field in column.fields:
            [value] = field_values(field.paths, row)
            if is_absent(value):
                record = row.record(0)
                empty = any(path in record for path in field.paths)
                hint = "; it is empty here" if empty else said_nearest(field.paths[0], record)
                reason = f"missing; {needs}{hint}"
                return TraceError(self.file, batch.lines[place], field.label, reason)
        return self.bad_value(column, batch, place, f"missing; {needs}")

    def unknown_kind(
        self, column: Column, batch: Batch, place: int, word: str | None
    ) -> TraceError:
        """A row says that something happened for which the mapping has no kind."""
        if word is None:
            return self.missing(column, batch, place, "every row needs it as `kind`")
        return self.bad_value(column, batch, place, f"{word!r} is not in [kinds]; {_advice(word)}")


def _advice(word: str) -> str:
    if word in KINDS:
        return f'write {word} = "{word}" there'
    return f'say there which kind it is, or "{word}" = "{IGNORE}" to leave such rows out'
