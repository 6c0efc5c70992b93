"""Room for the columns of a run: in memory, or in files where a run is too large for that.

The kernels go through each column from one end to the other, so a column in a memory-mapped file
serves them as well: the system keeps in memory what is being read and gives the rest back.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SPILL_FROM = 200_000_000  # bytes of one column from which it is kept in a file

Column = npt.NDArray[Any]


class Scratch:
    """Makes columns; those of `spill_from` bytes or more lie in a folder that goes with this."""

    def __init__(self, spill_from: int = SPILL_FROM) -> None:
        self._spill_from = spill_from
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files = 0

    def empty(self, length: int, dtype: npt.DTypeLike) -> Column:
        """A column with any values."""
        if length * np.dtype(dtype).itemsize < self._spill_from or not length:
            return np.empty(length, dtype)
        return np.memmap(self._file(), dtype, mode="w+", shape=(length,))

    def full(self, length: int, value: int, dtype: npt.DTypeLike) -> Column:
        """A column of one value."""
        column = self.empty(length, dtype)
        column.fill(value)
        return column

    @property
    def spilled(self) -> int:
        """How many columns lie in files."""
        return self._files

    def _file(self) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="ordercast-")
        self._files += 1
        return Path(self._folder.name) / f"column-{self._files}"
