"""A machine's state is plain data: it can be copied, and two equal states look equal.

`copy_plain` and `fingerprint` accept numbers, text, bytes, enums, tuples, lists, deques, sets,
dicts, frozen Structs, and objects of our own that are built from these. Anything else (a socket, a
function, a generator) is a mistake in a machine, and they say so.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Self

import msgspec

LEAVES = frozenset((int, float, str, bytes, bool, type(None)))


class PlainState:
    """An object whose attributes are its whole state."""

    def state(self) -> dict[str, Any]:
        """Everything that decides what this object does next."""
        return self.__dict__

    def copy(self) -> Self:
        """An independent twin: stepping one does not touch the other."""
        twin = object.__new__(type(self))
        twin.__dict__.update({k: copy_plain(v) for k, v in self.state().items()})
        return twin

    def fingerprint(self) -> str:
        """Equal for equal states, in every interpreter and under every hash seed."""
        return blake2b(repr(canonical(self)).encode(), digest_size=16).hexdigest()


def copy_plain(value: Any) -> Any:
    """A copy that shares only what cannot change."""
    kind = type(value)
    if kind in LEAVES or _is_frozen(value) or isinstance(value, enum.Enum):
        return value
    if kind is dict:
        return {k: v if type(v) in LEAVES else copy_plain(v) for k, v in value.items()}
    if kind in (list, tuple, set, frozenset):
        return kind([v if type(v) in LEAVES else copy_plain(v) for v in value])
    if kind is deque:
        return deque([copy_plain(v) for v in value], value.maxlen)
    if isinstance(value, PlainState):
        return value.copy()
    raise TypeError(f"{kind.__name__} is not plain data: a machine may not keep it as state")


def canonical(value: Any) -> Any:
    """The value as nested tuples in an order that no hash seed can change."""
    kind = type(value)
    if kind in LEAVES:
        return value
    if isinstance(value, enum.Enum):
        return (kind.__name__, value.name)
    if _is_frozen(value):
        return (kind.__name__, *_each(msgspec.structs.astuple(value)))
    if kind is dict:
        pairs = zip(_each(value), _each(value.values()), strict=True)
        return ("dict", *sorted(pairs, key=_key))
    if kind in (set, frozenset):
        return ("set", *sorted(_each(value), key=repr))
    if kind in (list, tuple, deque):
        return tuple(_each(value))
    if isinstance(value, PlainState):
        return (kind.__name__, canonical(value.state()))
    raise TypeError(f"{kind.__name__} is not plain data: a machine may not keep it as state")


def _is_frozen(value: Any) -> bool:
    # One that can change would be shared by copies.
    return isinstance(value, msgspec.Struct) and type(value).__struct_config__.frozen


def _each(values: Iterable[Any]) -> list[Any]:
    return [v if type(v) in LEAVES else canonical(v) for v in values]


def _key(pair: tuple[Any, Any]) -> str:
    return repr(pair[0])
