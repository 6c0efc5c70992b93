"""A mapping as data. Plain and frozen, so that it can travel to the tasks that read files."""

from __future__ import annotations

from typing import Literal

import msgspec

Format = Literal["jsonl", "json", "csv", "text", "otlp", "parquet"]
IGNORE = "ignore"  # the kind of rows that are left out, and counted
ANY = "*"  # in [kinds]: every other word
OWN_PROCESS = "@process"  # as a field: what the row has in our column `process`


class Field(msgspec.Struct, frozen=True):
    """A field of theirs: the first of these paths that a record has."""

    paths: tuple[str, ...]

    @property
    def label(self) -> str:
        return "|".join(self.paths)


class Template(msgspec.Struct, frozen=True):
    """Texts with fields between them: texts[0] fields[0] texts[1] ... texts[-1]."""

    texts: tuple[str, ...]
    fields: tuple[Field, ...]


class Constant(msgspec.Struct, frozen=True):
    """The same value in every row."""

    value: object


class FileName(msgspec.Struct, frozen=True):
    """What the one group of a pattern finds in the name of the file."""

    pattern: str


class RowOrder(msgspec.Struct, frozen=True):
    """An index made from the order of the rows of each process."""

    by: Literal["line", "time"]


Origin = Field | Template | Constant | FileName | RowOrder


class Column(msgspec.Struct, frozen=True):
    """Where a column of ours comes from."""

    name: str
    origin: Origin
    default: object = None
    optional: bool = False  # no row at all need have it
    unit: str = "iso"  # of `time`
    split: str = "|"  # of `members`

    @property
    def fields(self) -> tuple[Field, ...]:
        match self.origin:
            case Field():
                return (self.origin,)
            case Template(fields=fields):
                return fields
            case _:
                return ()


class Filter(msgspec.Struct, frozen=True):
    """Rows whose field has one of these values are kept, or left out."""

    field: Field
    values: frozenset[str]
    keep: bool


class Source(msgspec.Struct, frozen=True):
    """One kind of file: how to read it and what its fields mean."""

    format: Format
    files: tuple[str, ...]  # name patterns
    columns: tuple[Column, ...]
    kinds: dict[str, str] | None = None  # their words -> ours or IGNORE; None: their words are ours
    filters: tuple[Filter, ...] = ()
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    header: tuple[str, ...] = ()  # () = the first line of the file
    pattern: str = ""
    unmatched: Literal["refuse", "ignore"] = "refuse"

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    @property
    def row_order(self) -> Literal["line", "time"] | None:
        index = self.column("index")
        return index.origin.by if index and isinstance(index.origin, RowOrder) else None

    @property
    def uses_own_process(self) -> bool:
        return any(OWN_PROCESS in field.paths for field in self.fields)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields that the mapping speaks of."""
        named = [field for column in self.columns for field in column.fields]
        return (*named, *(one.field for one in self.filters))


class Group(msgspec.Struct, frozen=True):
    """A group that the mapping declares, in every run."""

    name: str
    members: tuple[str, ...] | None = None
    order: str | None = None
    protocol: str | None = None
    scope: str | None = None


class LogMapping(msgspec.Struct, frozen=True):
    """What a mapping file says."""

    file: str
    sources: tuple[Source, ...]
    groups: tuple[Group, ...] = ()
    complete: bool | frozenset[str] = False  # which logs are complete: all, none, these
