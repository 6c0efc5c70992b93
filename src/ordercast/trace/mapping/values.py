"""From their values to the types of our columns, a whole column at a time.

A column whose values all have the right type, as most have, is checked without looking at each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from ordercast.trace.mapping.keys import UNITS
from ordercast.trace.rows import INTEGER_COLUMNS, LARGEST, iso_nanoseconds

Refuse = Callable[[int, str], Exception]  # (which record, reason) -> the error to raise
NoneType = type(None)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)  # as text, as in CSV


def typed(
    name: str, values: Sequence[Any], refuse: Refuse, *, unit: str = "iso", split: str = "|"
) -> list[Any]:
    """The values of our column `name`; "" counts as absent."""
    if name == "time":
        return _converted(values, lambda value: _nanoseconds(value, unit), refuse)
    if name == "members":
        return _converted(values, lambda value: _names(value, split), refuse)
    if name in INTEGER_COLUMNS:
        return _integers(values, refuse)
    return texts(values, refuse)


def texts(values: Sequence[Any], refuse: Refuse) -> list[str | None]:
    """Texts; whole numbers and truth values as they are written in JSON."""
    if set(map(type, values)) <= {str, NoneType}:
        return [value or None for value in values]
    return _converted(values, _text, refuse)


def _integers(values: Sequence[Any], refuse: Refuse) -> list[int | None]:
    if set(map(type, values)) <= {int, NoneType} and all(
        value is None or abs(value) <= LARGEST for value in values
    ):
        return list(values)
    return _converted(values, _integer, refuse)


def _converted(values: Sequence[Any], convert: Callable[[Any], Any], refuse: Refuse) -> list[Any]:
    found: list[Any] = []
    for place, value in enumerate(values):
        if value is None or value == "":
            found.append(None)
            continue
        try:
            found.append(convert(value))
        except ValueError as reason:
            raise refuse(place, str(reason)) from None
    return found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int):
        raise ValueError(f"must be a text or a whole number, not {_shown(value)}")
    return str(value)


def _integer(value: Any) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError
        number = int(value)
    except ValueError:
        raise ValueError(f"must be a whole number, not {_shown(value)}") from None
    if abs(number) > LARGEST:
        raise ValueError(f"does not fit 64 bits: {_shown(value)}")
    return number


def _nanoseconds(value: Any, unit: str) -> int:
    if unit == "iso":
        if not isinstance(value, str) or _NUMBER.fullmatch(value):
            hint = 'say its unit: { field = ..., unit = "s" }, or ms, us, ns'
            shown = value[:60] if isinstance(value, str) else _shown(value)
            raise ValueError(f"must be an ISO timestamp, not {shown}; for a number {hint}")
        return iso_nanoseconds(value)
    try:
        if isinstance(value, bool):
            raise InvalidOperation
        number = Decimal(str(value))
        fits = abs(number) <= LARGEST  # else the product may be too large to compute
    except InvalidOperation:
        raise ValueError(f"must be a number of {unit}, not {_shown(value)}") from None
    if not fits:
        raise ValueError(f"does not fit 64 bits: {_shown(value)}")
    return _integer(int(number * UNITS[unit]))  # exact, as with floats it would not be


def _names(value: Any, split: str) -> tuple[str, ...]:
    if isinstance(value, str) and value.startswith("["):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as reason:
            raise ValueError(f"bad JSON array: {reason}") from None
    elif isinstance(value, str):
        value = [name.strip() for name in value.split(split)]
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ValueError(f"must be a list of names, not {_shown(value)}")
    return tuple(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
