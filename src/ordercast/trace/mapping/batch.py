"""Some rows of a file, in its order: as records (nested, each its own fields) or as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

Record = dict[str, Any]  # what one row has, by the names of their fields


class Batch(ABC):
    """Rows with the lines they stand on, from 1."""

    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)

    @abstractmethod
    def values(self, path: str) -> list[Any]:
        """What each row has at `path`, None if nothing."""

    @abstractmethod
    def put(self, name: str, values: list[Any]) -> None:
        """Give each row one more field."""

    @abstractmethod
    def chosen(self, places: Sequence[int]) -> Batch:
        """Only these rows."""

    @abstractmethod
    def record(self, place: int) -> Record:
        """One row with all that it has, for refusals."""


class Records(Batch):
    """Rows that are objects of their own, as JSON has them."""

    def __init__(self, records: list[Record], lines: Sequence[int]) -> None:
        self.records = records
        self.lines = lines

    def values(self, path: str) -> list[Any]:
        if "." not in path:
            return [record.get(path) for record in self.records]
        return [lookup(record, path) for record in self.records]

    def put(self, name: str, values: list[Any]) -> None:
        for record, value in zip(self.records, values, strict=True):
            record[name] = value

    def chosen(self, places: Sequence[int]) -> Batch:
        records = [self.records[place] for place in places]
        return Records(records, [self.lines[place] for place in places])

    def record(self, place: int) -> Record:
        return self.records[place]


class Columns(Batch):
    """Rows that all have the same fields, as CSV and Parquet have them."""

    def __init__(self, columns: Mapping[str, Sequence[Any]], lines: Sequence[int]) -> None:
        self.columns = dict(columns)
        self.lines = lines

    def values(self, path: str) -> list[Any]:
        if path in self.columns:
            return list(self.columns[path])
        outer, _, inner = path.partition(".")
        if not inner or outer not in self.columns:
            return [None] * len(self)
        return [lookup(value, inner) for value in self.columns[outer]]

    def put(self, name: str, values: list[Any]) -> None:
        self.columns[name] = values

    def chosen(self, places: Sequence[int]) -> Batch:
        return Columns(
            {name: [column[p] for p in places] for name, column in self.columns.items()},
            [self.lines[place] for place in places],
        )

    def record(self, place: int) -> Record:
        return {name: column[place] for name, column in self.columns.items()}


def lookup(value: Any, path: str) -> Any:
    """What stands at `path` inside `value`, None if nothing does.

    A path is first looked for as it stands, then piece by piece, so that `resource.service.name`
    finds the attribute "service.name" of the resource. A number in a path is a place in a list.
    """
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
