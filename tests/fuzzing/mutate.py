"""Packets that are well formed and wrong: typed mutation of msgspec Structs, for any machine.

    seen = Seen()                         # what honest nodes say: call `note` on every header
    bad = mutated(header, seen, rng)      # the same type, with some fields changed
    bad = drawn(Header, seen, rng)        # from nothing but its type

A mutated field keeps its type, so the result passes every decoder; what it says may be anything. It
takes the values that break machines: those near the true one, those seen in other packets (process
ids of others, old views, ballots in use), and extremes. Tuples lose, double, swap and gain items;
optional fields come and go. `drawn` knows fields of the types int, float, bool, str, bytes, enums,
Structs, unions, and tuples, lists, dicts and sets of these.
"""

from __future__ import annotations

import enum
import types
import typing
from collections import defaultdict
from random import Random
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

EXTREMES = (0, 1, -1, 2, 255, 1 << 16, 1 << 21, 1 << 31, 1 << 40, 1 << 53, 1 << 62, (1 << 63) - 1)
NEAR = (-2, -1, 1, 2, 3, 1024)
TEXTS = ("", "p0", "nobody", "\x00", "x" * 300)
MAX_SEEN = 400  # values kept of each type
MAX_ITEMS = 4  # in a drawn tuple


class Seen:
    """Values of honest packets, by type: Structs, numbers and texts."""

    def __init__(self) -> None:
        self.of: dict[type, list[Any]] = defaultdict(list)

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
        values = self.of[type(value)]
        if len(values) < MAX_SEEN:
            values.append(value)
        else:
            values[hash(value) % MAX_SEEN] = value

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
    origin = get_origin(kind)
    if origin is typing.Annotated:
        return drawn(get_args(kind)[0], seen, rng)
    if origin in (Union, types.UnionType):
        return drawn(rng.choice(get_args(kind)), seen, rng)
    if origin is typing.Literal:
        return rng.choice(get_args(kind))
    if origin in (tuple, list, set, frozenset, dict):
        return _drawn_items(kind, origin, seen, rng)
    if kind is None or kind is type(None):
        return None
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        known = seen.one(kind, rng)
        if known is not None and rng.random() < 0.7:
            return known
        hints = get_type_hints(kind, include_extras=True)
        return kind(*(drawn(hints[name], seen, rng) for name in kind.__struct_fields__))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return rng.choice(list(kind))
    return _drawn_plain(kind, seen, rng)


def _drawn_plain(kind: Any, seen: Seen, rng: Random) -> Any:
    if kind is bool:
        return rng.random() < 0.5
    if kind is int:
        known = seen.one(int, rng)
        return known if known is not None and rng.random() < 0.6 else rng.choice(EXTREMES)
    if kind is float:
        return rng.choice((0.0, -1.0, 1e300))
    if kind is str:
        known = seen.one(str, rng)
        return known if known is not None and rng.random() < 0.6 else rng.choice(TEXTS)
    if kind is bytes:
        return rng.choice((b"", b"\x00", b"x" * 300, seen.one(bytes, rng) or b"y"))
    raise TypeError(f"no value of {kind} can be drawn: teach it to this module")


def _drawn_items(kind: Any, origin: Any, seen: Seen, rng: Random) -> Any:
    arguments = get_args(kind)
    if origin is dict:
        pairs = range(rng.randrange(MAX_ITEMS))
        return {drawn(arguments[0], seen, rng): drawn(arguments[1], seen, rng) for _ in pairs}
    if origin is tuple and arguments[1:] != (Ellipsis,):
        return tuple(drawn(argument, seen, rng) for argument in arguments)
    return origin(drawn(arguments[0], seen, rng) for _ in range(rng.randrange(MAX_ITEMS)))


def _change(value: Any, kind: Any, seen: Seen, rng: Random) -> Any:
    """One change somewhere inside."""
    if isinstance(value, msgspec.Struct) and value.__struct_fields__ and rng.random() < 0.9:
        name = rng.choice(value.__struct_fields__)
        hint = get_type_hints(type(value), include_extras=True)[name]
        field = _change(getattr(value, name), hint, seen, rng)
        return msgspec.structs.replace(value, **{name: field})
    if isinstance(value, tuple) and value and rng.random() < 0.9:
        return _change_items(value, kind, seen, rng)
    if type(value) is int and rng.random() < 0.4:
        return max(-(1 << 63), min((1 << 63) - 1, value + rng.choice(NEAR)))
    return drawn(kind, seen, rng)


def _change_items(value: tuple[Any, ...], kind: Any, seen: Seen, rng: Random) -> tuple[Any, ...]:
    items, arguments = list(value), get_args(kind)
    at = rng.randrange(len(items))
    is_free = len(arguments) == 2 and arguments[1] is Ellipsis
    act = rng.choice(("change", "lose", "double", "swap", "gain")) if is_free else "change"
    hint = arguments[0] if is_free else arguments[at] if arguments else type(items[at])
    if act == "change":
        items[at] = _change(items[at], hint, seen, rng)
    elif act == "lose":
        del items[at]
    elif act == "double":
        items.insert(at, items[at])
    elif act == "swap":
        items[at], items[-1] = items[-1], items[at]
    else:
        items.append(drawn(hint, seen, rng))
    return tuple(items)
