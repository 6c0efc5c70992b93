"""How a node is put wrong by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ordercast.process.process import Process

NOT_THERE = 99  # no node has this number, and no group
HUGE = 1 << 20

Spoil = Callable[[Process], None]


def put(look: Callable[[Process], Any], **fields: Any) -> Spoil:
    """Another value for fields of what is looked at; a function gives it from the old one."""

    def spoil(node: Process) -> None:
        owner = look(node)
        for name, value in fields.items():
            assert hasattr(owner, name), f"{type(owner).__name__} has no {name}"
            setattr(owner, name, value(getattr(owner, name)) if callable(value) else value)

    return spoil
