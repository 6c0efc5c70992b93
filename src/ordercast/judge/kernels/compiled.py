"""Kernels: loops over arrays that numba compiles when there is enough to do.

Compiling takes a second or two per kernel, once per machine: the result is kept on disk. A run
of a few thousand events is judged sooner by the same function as plain Python. So a kernel is
compiled by the first call with an array of COMPILE_FROM items or more, and used from then on. A
process that is going to judge thousands of small runs says so: `compile_at_once`.

A kernel calls no other kernel, and takes and returns arrays and numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

COMPILE_FROM = 50_000  # items of the longest array

_at_once = False

P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """A function that is compiled as soon as that pays."""

    def __init__(self, function: Callable[P, R]) -> None:
        update_wrapper(self, function)
        self.plain = function
        self._compiled: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._compiled is None and not (_at_once or _is_much(args)):
            return self.plain(*args, **kwargs)
        return self.compiled(*args, **kwargs)

    def for_size(self, items: int) -> Callable[P, R]:
        """The form that suits `items` in all, where each call sees a small part of them."""
        return self.compiled if items >= COMPILE_FROM else self

    @property
    def compiled(self) -> Callable[P, R]:
        """The compiled form, whatever the size."""
        if self._compiled is None:
            self._compiled = _compile(self.plain)
        return self._compiled


def compile_at_once() -> None:
    """From now on kernels of this process are compiled at their first call, however small."""
    global _at_once
    _at_once = True


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Mark a function as a kernel."""
    return Kernel(function)


def _is_much(args: tuple[Any, ...]) -> bool:
    return any(isinstance(one, np.ndarray) and one.size >= COMPILE_FROM for one in args)


def _compile(function: Callable[P, R]) -> Callable[P, R]:
    import numba

    try:
        compiled: Callable[P, R] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # code that was shipped in an archive has no folder to keep results in
        compiled = numba.njit(nogil=True)(function)
    return compiled
