"""Packets that are well formed and wrong: typed mutation of msgspec Structs, for any machine.

    seen = Seen()                         # what honest nodes say: call `note` on every header
    bad = mutated(header, seen, rng)      # the same type, with some fields changed
    bad = drawn(Header, seen, rng)        # from nothing but its type

A mutated field keeps its type, so the result passes every decoder; what it says may be anything. It
takes the values that break machines: those near the true one, those of other fields, those seen in
other packets (process ids of others, old views, ballots in use), and extremes. Tuples become empty,
lose, double, swap and gain items; optional fields come and go. `drawn` knows fields of the types
int, float, bool, str, bytes, enums, Structs, unions, and tuples, lists, dicts and sets of these.
"""

from __future__ import annotations

import enum
import types
import typing
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from random import Random
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

EXTREMES = (
    0, 1, -1, 2, 255, 1 << 16, 1 << 21, 1 << 31, (1 << 32) - 2, 1 << 40, 1 << 53, 1 << 62,
    (1 << 63) - 1, -(1 << 63),
)  # fmt: skip
NEAR = (-2, -1, 1, 2, 3, 1024)
TEXTS = ("", "p0", "nobody", "\x00", "x" * 300)
LONG = b"x" * 5000
MAX_SEEN = 400  # values kept of each type
MAX_ITEMS = 4  # in a drawn tuple

_origin: Callable[[Any], Any] = cache(get_origin)
_arguments: Callable[[Any], tuple[Any, ...]] = cache(get_args)
_hints: Callable[[Any], dict[str, Any]] = cache(partial(get_type_hints, include_extras=True))


class Seen:
    """Values of honest packets, by type: Structs, numbers and texts."""

    def __init__(self) -> None:
        self.of: dict[type, list[Any]] = defaultdict(list)
        self.count: dict[type, int] = defaultdict(int)

    def note(self, value: Any) -> None:
        """This value, and all inside."""
        if isinstance(value, msgspec.Struct):
            self._keep(value)
            for name in value.__struct_fields__:
                self.note(getattr(value, name))
        elif isinstance(value, tuple | list | set | frozenset):
            for item in value:
                self.note(item)
        elif isinstance(value, dict):
            for key, item in value.items():
                self.note(key)
                self.note(item)
        elif isinstance(value, int | str | bytes):
            self._keep(value)

    def _keep(self, value: Any) -> None:
        kind = type(value)
        values = self.of[kind]
        if len(values) < MAX_SEEN:
            values.append(value)
        else:  # the oldest goes
            values[self.count[kind] % MAX_SEEN] = value
        self.count[kind] += 1

    def one(self, kind: type, rng: Random) -> Any:
        """A value of this type that was seen, or None."""
        values = self.of.get(kind)
        return rng.choice(values) if values else None


def mutated(struct: Any, seen: Seen, rng: Random) -> Any:
    """A Struct of the same type, with one to three fields changed, at any depth."""
    result = struct
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        result = _change(result, type(result), seen, rng)
    return result


def drawn(kind: Any, seen: Seen, rng: Random) -> Any:
    """A value of this type, from what was seen and from extremes."""
    if kind is int:
        known = seen.one(int, rng)
        return known if known is not None and rng.random() < 0.6 else rng.choice(EXTREMES)
    origin = _origin(kind)
    if origin is typing.Annotated:
        return drawn(_arguments(kind)[0], seen, rng)
    if origin in (Union, types.UnionType):
        return drawn(rng.choice(_arguments(kind)), seen, rng)
    if origin is typing.Literal:
        return rng.choice(_arguments(kind))
    if origin in (tuple, list, set, frozenset, dict):
        return _drawn_items(kind, origin, seen, rng)
    if kind is None or kind is type(None):
        return None
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _drawn_struct(kind, seen, rng)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return rng.choice(list(kind))
    return _drawn_plain(kind, seen, rng)


def _drawn_struct(kind: type[msgspec.Struct], seen: Seen, rng: Random) -> Any:
    known = seen.one(kind, rng)
    if known is not None and rng.random() < 0.7:
        return known
    hints = _hints(kind)
    return kind(*(drawn(hints[name], seen, rng) for name in kind.__struct_fields__))


def _drawn_plain(kind: Any, seen: Seen, rng: Random) -> Any:
    if kind is bool:
        return rng.random() < 0.5
    if kind is float:
        return rng.choice((0.0, -1.0, 1e300))
    if kind is str:
        known = seen.one(str, rng)
        return known if known is not None and rng.random() < 0.6 else rng.choice(TEXTS)
    if kind is bytes:
        return rng.choice((b"", b"\x00", LONG, seen.one(bytes, rng) or b"y"))
    if kind is Any:
        return rng.choice((None, 0, "x", ()))
    raise TypeError(f"no value of {kind} can be drawn: teach it to this module")


def _drawn_items(kind: Any, origin: Any, seen: Seen, rng: Random) -> Any:
    arguments = _arguments(kind)
    if origin is dict:
        pairs = range(rng.randrange(MAX_ITEMS))
        return {drawn(arguments[0], seen, rng): drawn(arguments[1], seen, rng) for _ in pairs}
    if origin is tuple and arguments[1:] != (Ellipsis,):
        return tuple(drawn(argument, seen, rng) for argument in arguments)
    return origin(drawn(arguments[0], seen, rng) for _ in range(rng.randrange(MAX_ITEMS)))


def _change(value: Any, kind: Any, seen: Seen, rng: Random) -> Any:
    """One change somewhere inside."""
    if isinstance(value, msgspec.Struct) and value.__struct_fields__ and rng.random() < 0.9:
        return _change_field(value, seen, rng)
    if isinstance(value, tuple) and value and rng.random() < 0.9:
        return _change_items(value, kind, seen, rng)
    if type(value) is int and rng.random() < 0.4:
        return max(-(1 << 63), min((1 << 63) - 1, value + rng.choice(NEAR)))
    return drawn(kind, seen, rng)


def _change_field(struct: Any, seen: Seen, rng: Random) -> Any:
    names, hints = struct.__struct_fields__, _hints(type(struct))
    name = rng.choice(names)
    other = rng.choice(names) if rng.random() < 0.15 else name
    if other != name and hints[other] == hints[name]:
        new = getattr(struct, other)
    else:
        new = _change(getattr(struct, name), hints[name], seen, rng)
    return msgspec.structs.replace(struct, **{name: new})


def _tuple_in(kind: Any) -> Any:
    """The tuple that a field of this type may be."""
    if _origin(kind) in (Union, types.UnionType):
        return next(one for one in _arguments(kind) if _origin(one) is tuple)
    return kind


def _change_items(value: tuple[Any, ...], kind: Any, seen: Seen, rng: Random) -> tuple[Any, ...]:
    items, arguments = list(value), _arguments(_tuple_in(kind))
    at = rng.randrange(len(items))
    is_free = len(arguments) == 2 and arguments[1] is Ellipsis
    act = "change"
    if is_free:
        act = rng.choice(("change", "change", "lose", "double", "swap", "gain", "empty", "twice"))
    hint = arguments[0] if is_free else arguments[at] if arguments else type(items[at])
    if act == "change":
        items[at] = _change(items[at], hint, seen, rng)
    elif act == "lose":
        del items[at]
    elif act == "double":
        items.insert(at, items[at])
    elif act == "swap":
        items[at], items[-1] = items[-1], items[at]
    elif act == "gain":
        items.append(drawn(hint, seen, rng))
    elif act == "empty":
        items.clear()
    else:
        items += items
    return tuple(items)
