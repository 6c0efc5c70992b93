"""One table of a TOML file, read key by key; what is wrong is said in one sentence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path

from ordercast.errors import MappingError
from ordercast.trace.mapping.keys import SOURCE_KEYS, WHOLE_KEYS

MOST_NAMES = 12  # how many names a refusal lists


class Section:
    """A table with the keys it may have; an unknown key is refused with the nearest name."""

    def __init__(
        self, file: Path, place: str, values: object, keys: Mapping[str, str] | None = None
    ) -> None:
        self.file = file
        self.place = place  # "[columns]"; "" for the whole file
        if not isinstance(values, dict):
            raise self.wrong(f"must be a table, not {values!r}")
        self.values: dict[str, object] = values
        for key in values:
            if keys is not None and key not in keys:
                raise self.wrong(f"has the unknown key {key!r}{self._hint(key, keys)}")

    def wrong(self, reason: str) -> MappingError:
        return MappingError(f"{self.file}: {self.place or 'the mapping'} {reason}")

    def _hint(self, key: str, keys: Mapping[str, str]) -> str:
        if self.place and (key in WHOLE_KEYS or key in SOURCE_KEYS):
            return f": write {key!r} at the top, above the first [table]"
        return said_nearest(key, keys)

    def needed(self, key: str, what: str) -> object:
        if key not in self.values:
            raise self.wrong(f"needs {key!r}: {what}")
        return self.values[key]

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or (key in self.values and not value):
            raise self.wrong(f"{key!r} must be a text, not {value!r}")
        return value

    def character(self, key: str, default: str) -> str:
        value = self.text(key, default)
        if len(value) != 1:
            raise self.wrong(f"{key!r} must be one character, not {value!r}")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(f"{key!r} must be true or false, not {value!r}")
        return value

    def choice(self, key: str, choices: Collection[str], default: str = "") -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in choices:
            hint = said_nearest(str(value), choices)
            raise self.wrong(f"{key!r} cannot be {value!r}{hint}")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts; () if there is none."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
            raise self.wrong(f"{key!r} must be a list of texts, not {value!r}")
        return tuple(value)

    def tables(self, key: str) -> list[object]:
        """The tables that were written as [[key]]."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(f"has [{key}] where [[{key}]] must stand")
        return value


def said_nearest(name: str, known: Collection[str]) -> str:
    """What was probably meant, or else what there is."""
    near = get_close_matches(name.lower(), [one.lower() for one in known], n=1, cutoff=0.6)
    for one in known:
        if near and one.lower() == near[0]:
            return f"; did you mean {one!r}?"
    return f"; there is {listed(known)}"


def listed(names: Collection[str]) -> str:
    """The names, not too many of them."""
    shown = ", ".join(list(names)[:MOST_NAMES]) or "nothing"
    return f"{shown}, and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown
