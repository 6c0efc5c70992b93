"""Message ids as dense integers, numbered as they are first met.

A table of hashes finds the number of an id. Two ids with one hash are told apart by their bytes,
so no collision can go unnoticed, let alone merge two messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.judge.kernels import compiled
from ordercast.judge.kernels.compiled import kernel

Numbers = npt.NDArray[np.int32]
NONE = -1
_FIRST_SLOTS = 1 << 17  # a power of two; at most half of them are in use
_FIRST_BYTES = 1 << 20
_STEP = 1 << 16  # strings between two looks whether there is room


class Ids:
    """Every id that was met, and its number."""

    def __init__(self) -> None:
        self._known: dict[str, int] | None = {}  # as long as there are few
        self._slots = np.full(0, NONE, np.int32)  # hash -> number
        self._hashes = np.empty(0, np.uint64)  # number -> hash
        self._ends = np.zeros(1, np.int64)  # number -> where its bytes end; one entry ahead
        self._bytes = np.empty(0, np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count if self._known is None else len(self._known)

    def name(self, number: int) -> str:
        """The id itself."""
        if self._known is not None:
            return list(self._known)[number]
        start, end = self._ends[number], self._ends[number + 1]
        return self._bytes[start:end].tobytes().decode()

    def number(self, column: Any) -> Numbers:
        """The numbers of a column of strings; NONE for null."""
        if self._known is not None:
            if len(self._known) + len(column) < compiled.COMPILE_FROM:
                return self._number_few(column)
            self._grow_up(self._known)
        parts = [self._number_many(chunk) for chunk in _chunks(column)]
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def _number_few(self, column: Any) -> Numbers:
        known = self._known
        assert known is not None
        words = pc.cast(column, pa.string()).to_pylist()
        numbers = [
            NONE if word is None else known.setdefault(word, len(known)) for word in words
        ]  # fmt: skip
        return np.array(numbers, np.int32)

    def _grow_up(self, known: dict[str, int]) -> None:
        self._known = None
        self._slots = np.full(_FIRST_SLOTS, NONE, np.int32)
        self._hashes = np.empty(_FIRST_SLOTS // 2, np.uint64)
        self._ends = np.zeros(_FIRST_SLOTS // 2 + 1, np.int64)
        self._bytes = np.empty(_FIRST_BYTES, np.uint8)
        self._number_many(pa.array(known, pa.string()))

    def _number_many(self, strings: Any) -> Numbers:
        offsets, data, valid = _buffers(strings)
        hashes = np.empty(len(strings), np.uint64)
        _hash.compiled(offsets, data, hashes)
        numbers = np.full(len(strings), NONE, np.int32)
        row = 0
        while row < len(strings):
            longest = int(np.diff(offsets[row : row + _STEP + 1]).sum())
            self._make_room(_STEP, longest)
            last = min(row + _STEP, len(strings))
            self._count = _number.compiled(
                offsets, data, valid, hashes, row, last, self._slots, self._hashes, self._ends,
                self._bytes, self._count, numbers,
            )  # fmt: skip
            row = last
        return numbers

    def _make_room(self, more: int, more_bytes: int) -> None:
        """Room for `more` new ids: bytes, entries, and twice as many slots as entries."""
        used = int(self._ends[self._count])
        if used + more_bytes > len(self._bytes):
            self._bytes = _longer(self._bytes, max(2 * len(self._bytes), used + more_bytes))
        if self._count + more <= len(self._hashes):
            return
        slots = 2 * len(self._slots)
        self._hashes = _longer(self._hashes, slots // 2)
        self._ends = _longer(self._ends, slots // 2 + 1)
        self._slots = np.full(slots, NONE, np.int32)
        _place.compiled(self._hashes, self._count, self._slots)


def _longer(column: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    longer = np.empty(length, column.dtype)
    longer[: len(column)] = column
    return longer


def _chunks(column: Any) -> list[Any]:
    column = pc.cast(column, pa.string())
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _buffers(strings: Any) -> tuple[Any, Any, Any]:
    """Where each string starts and ends, the bytes, and which are no nulls."""
    _, offsets, data = strings.buffers()
    ends = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    words = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    if not strings.null_count:
        return ends, words, np.empty(0, np.bool_)
    return ends, words, np.asarray(strings.is_valid())


@kernel
def _hash(offsets: Any, data: Any, hashes: Any) -> None:
    """FNV-1a of every string, its high half folded into the low one."""
    for row in range(len(hashes)):
        h = np.uint64(14695981039346656037)
        for k in range(offsets[row], offsets[row + 1]):
            h = (h ^ np.uint64(data[k])) * np.uint64(1099511628211)
        hashes[row] = h ^ (h >> np.uint64(32))


@kernel
def _number(
    offsets: Any, data: Any, valid: Any, hash_of: Any, first: int, last: int,
    slots: Any, hashes: Any, ends: Any, store: Any, count: int, numbers: Any,
) -> int:  # fmt: skip
    """Look up or enter the strings of rows [first, last); gives how many ids there are then."""
    mask = np.uint64(len(slots) - 1)
    # Logs tell of messages in much the same order: often the one after the last comes next, or
    # the one after the last but one, if a send lay between two deliveries.
    guess, other_guess = 0, 0
    for row in range(first, last):
        if len(valid) and not valid[row]:
            continue
        h = hash_of[row]
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        slot = h & mask
        if guess >= count or hashes[guess] != h:
            guess, other_guess = other_guess, guess
        guessed = guess < count and hashes[guess] == h
        number = guess if guessed else slots[slot]
        while True:
            if number == -1:
                slots[slot] = count
                hashes[count] = h
                at = ends[count]
                for k in range(length):
                    store[at + k] = data[start + k]
                ends[count + 1] = at + length
                number = count
                count += 1
                break
            if hashes[number] == h:
                at = ends[number]
                same = ends[number + 1] - at == length
                k = 0
                while same and k < length:
                    same = store[at + k] == data[start + k]
                    k += 1
                if same:
                    break
            if guessed:  # another id with this hash: see in the table
                guessed = False
            else:
                slot = (slot + np.uint64(1)) & mask
            number = slots[slot]
        numbers[row] = number
        guess = number + 1
    return count


@kernel
def _place(hashes: Any, count: int, slots: Any) -> None:
    """Enter known ids into a new table."""
    mask = np.uint64(len(slots) - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot] != -1:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
