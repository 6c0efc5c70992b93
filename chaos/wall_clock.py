"""A wall clock that can be stepped: what `time.time()` and `time.time_ns()` tell this process.

The kernel has no namespaces for the wall clock, so the step is made where Python reads it. Import
this module before whoever takes these functions by name. The monotonic clock stays as it is.
"""

from __future__ import annotations

import time

_now_ns = time.time_ns
_offset_ns = 0


def step(seconds: float) -> None:
    """From now on the clock is so much later, or earlier."""
    global _offset_ns
    _offset_ns += int(seconds * 1e9)


def _stepped_ns() -> int:
    return _now_ns() + _offset_ns


def _stepped() -> float:
    return _stepped_ns() / 1e9


def install() -> None:
    """Replace the functions of the module `time`."""
    time.time_ns = _stepped_ns
    time.time = _stepped
