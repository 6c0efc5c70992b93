"""What waits on a connection until the kernel takes more of it.

    packets of the cluster     leave first: who lives, who is in, what changes
    all other frames           leave after them
    a frame that has begun     is finished before anything else leaves

In each of the two lanes frames keep their order. So a packet of the cluster waits for one frame and
for what the kernel holds, and not for all that was sent before it.
"""

from __future__ import annotations

from collections import deque

from ordercast.wire.control import CLUSTER_CHANNEL
from ordercast.wire.frame import channel_of

PIECE = 256 * 1024  # bytes that are handed on at a time


class Backlog:
    """Frames in, pieces out."""

    __slots__ = ("_begun", "_first", "_rest", "size")

    def __init__(self) -> None:
        self.size = 0  # bytes
        self._begun = memoryview(b"")  # what is left of a large frame
        self._first: deque[bytes] = deque()  # packets of the cluster
        self._rest: deque[bytes] = deque()

    def __bool__(self) -> bool:
        return self.size > 0

    def put(self, frame: bytes) -> None:
        """It waits behind the others of its lane."""
        lane = self._first if channel_of(frame) == CLUSTER_CHANNEL else self._rest
        lane.append(frame)
        self.size += len(frame)

    def take(self) -> bytes:
        """The next piece: some frames, or a part of a large one. Empty if nothing waits."""
        if not self._begun:
            lane = self._first or self._rest
            frames = self._small_frames(lane)
            if frames or not lane:
                return b"".join(frames)
            self._begun = memoryview(lane.popleft())
        piece, self._begun = bytes(self._begun[:PIECE]), self._begun[PIECE:]
        self.size -= len(piece)
        return piece

    def _small_frames(self, lane: deque[bytes]) -> list[bytes]:
        """As many as are one piece together."""
        frames, room = [], PIECE
        while lane and len(lane[0]) <= room:
            room -= len(lane[0])
            frames.append(lane.popleft())
        self.size -= PIECE - room
        return frames

    def clear(self) -> None:
        """Nothing waits any more."""
        self._first.clear()
        self._rest.clear()
        self._begun, self.size = memoryview(b""), 0
