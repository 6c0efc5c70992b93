"""The application's state of a group: how it is taken, how it is given, how two become one.

The application knows what its state is; this package only carries it, as bytes, to whoever joins.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

Sides = tuple[tuple[str, ...], ...]
"""The members of each side of a partition, the chosen side first."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What `join(..., state=...)` is given.

    `get` returns the state as bytes. It is called when the program has handled everything that the
    group delivered before a joiner's view, and comes for the next event. `set` takes such bytes,
    at a joiner, before its first event of the group. `merge(sides, mine, chosen)` is asked when
    two sides of a partition meet and this node comes over to the other one: what it starts from,
    or None for the state of the chosen side.
    """

    get: Callable[[], bytes]
    set: Callable[[bytes], None]
    merge: Callable[[Sides, bytes, bytes], bytes | None] | None = None

    def __post_init__(self) -> None:
        for name in ("get", "set"):
            if not callable(getattr(self, name)):
                raise TypeError(f"State({name}=...) is a function, not {getattr(self, name)!r}")
        if self.merge is not None and not callable(self.merge):
            raise TypeError(f"State(merge=...) is a function or None, not {self.merge!r}")


def bring_together(state: State, sides: Sides, chosen: bytes) -> None:
    """This node comes over to the chosen side of a partition: what it had, and what that has.

    Called when the application has handled everything of its own side.
    """
    merged = None
    if state.merge is not None:
        merged = state.merge(sides, as_state(state.get(), "get"), chosen)
    state.set(chosen if merged is None else as_state(merged, "merge"))


def as_state(given: object, function: str) -> bytes:
    """What a function of the application returned, if it is a state."""
    if isinstance(given, bytes):
        return given
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    raise TypeError(f"State.{function} returned {type(given).__name__}; a state is bytes")


def check_state(state: object) -> None:
    """Raise if `join` was given something else as its state."""
    if not isinstance(state, State | None):
        raise TypeError(f"state= is a State(get=..., set=...), not {state!r}")
