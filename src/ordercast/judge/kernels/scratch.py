"""Room for the columns of a run: in memory, or in files where a run is too large for that.

The kernels go through each column from one end to the other, so a column in a memory-mapped file
serves them as well: the system keeps in memory what is being read and gives the rest back.
That needs a folder on a disk. Where Spark is told which folders to use, the first of them is taken.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

SPILL_FROM = 200_000_000  # bytes of one column from which it is kept in a file
LOCAL_FOLDERS = ("SPARK_LOCAL_DIRS", "LOCAL_DIRS")  # on disks, by commas: of Spark, of YARN

Column = npt.NDArray[Any]


class Scratch:
    """Makes columns; those of `spill_from` bytes or more lie in a folder that goes with this."""

    def __init__(self, spill_from: int = SPILL_FROM) -> None:
        self._spill_from = spill_from
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files = 0
        self._naming = Lock()  # two families of checks may work at the same time

    def empty(self, length: int, dtype: npt.DTypeLike) -> Column:
        """A column with any values."""
        if length * np.dtype(dtype).itemsize < self._spill_from or not length:
            return np.empty(length, dtype)
        return mapped(self.file(), "w+", dtype, (length,))

    def full(self, length: int, value: int, dtype: npt.DTypeLike) -> Column:
        """A column of one value."""
        column = self.empty(length, dtype)
        column.fill(value)
        return column

    def gather(self, dtype: npt.DTypeLike) -> Gathered:
        """A column that comes piece by piece."""
        return Gathered(self, np.dtype(dtype))

    @property
    def spill_from(self) -> int:
        return self._spill_from

    @property
    def spilled(self) -> int:
        """How many columns lie in files."""
        return self._files

    def file(self) -> Path:
        """The name of a file that goes with this."""
        with self._naming:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="ordercast-", dir=local_folder())
            self._files += 1
            return Path(self._folder.name) / f"column-{self._files}"


def local_folder() -> str | None:
    """The first folder that Spark is told to use for files of its own; None: none is there.

    The folder for temporary files, which is used then, may lie in memory.
    """
    told = (os.environ.get(name, "").split(",")[0].strip() for name in LOCAL_FOLDERS)
    return next((folder for folder in told if os.path.isdir(folder)), None)


def mapped(
    file: Path, mode: Literal["r+", "w+"], dtype: npt.DTypeLike, shape: tuple[int] | None = None
) -> Column:
    """The file as a column; it has no name from then on.

    Spark kills its Python workers, which then cannot tidy up. A file without a name is gone with
    the process, and before that with the last use of the column.
    """
    column = np.memmap(file, dtype, mode=mode, shape=shape)
    file.unlink()
    return column


class Gathered:
    """The pieces of a column: in memory, or one after the other in a file."""

    def __init__(self, scratch: Scratch, dtype: np.dtype[Any]) -> None:
        self._scratch = scratch
        self._dtype = dtype
        self._pieces: list[Column] = []
        self._bytes = 0
        self._file: Path | None = None

    def add(self, piece: Column) -> None:
        """The next piece."""
        self._pieces.append(piece.astype(self._dtype, copy=False))
        self._bytes += self._pieces[-1].nbytes
        if self._bytes >= self._scratch.spill_from:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = self._scratch.file()
        with self._file.open("ab") as out:
            for piece in self._pieces:
                piece.tofile(out)
        self._pieces.clear()

    def whole(self) -> Column:
        """All pieces as one column. Nothing may be added then."""
        if self._file is not None:
            return mapped(self._file, "r+", self._dtype)
        if len(self._pieces) == 1:
            return self._pieces.pop()
        column = np.empty(self._bytes // self._dtype.itemsize, self._dtype)
        at = 0
        while self._pieces:
            piece = self._pieces.pop(0)
            column[at : at + len(piece)] = piece
            at += len(piece)
        return column
