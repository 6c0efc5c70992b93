"""Messages become frames: at most one open frame in a domain.

Here a domain is all groups of a node by the same protocol. Its open frame is sealed

- by a multicast to another group of the domain. With one open frame per *group*, a to g1, b to g2,
  c to g1 in one turn would leave as {a, c} and {b}: in either order FIFO is broken;
- when the next message would exceed the byte limit;
- at the end of the loop's turn. So a lone message leaves at once and no timer ever delays it,
  while a busy sender's frames grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ordercast.runtime.options import FRAME_COST, MESSAGE_COST
from ordercast.runtime.receipt import Progress, Receipt
from ordercast.runtime.window import Window


class Sender(Protocol):
    """What an outbox needs to know of a group."""

    progress: Progress
    window: Window
    frames_sent: int

    def send_frame(self, bodies: list[bytes], size: int) -> None:
        """Number the messages (`size` bytes in all), record them and multicast the frame."""


class OpenFrame:
    """Messages of one group that leave together."""

    __slots__ = ("bodies", "cost", "receipt", "sender")

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.bodies: list[bytes] = []
        self.cost = 0  # of all messages
        self.receipt = Receipt(sender.progress, sender.frames_sent + 1)


class Outbox:
    """The open frame of one domain."""

    def __init__(self, frame_bytes: int, wake: Callable[[], None]) -> None:
        self.frame_bytes = frame_bytes
        self.frame: OpenFrame | None = None
        self.filled = False  # a frame was sealed at the byte limit: let the loop turn
        self._wake = wake  # ask for `seal` at the end of this turn

    def add(self, sender: Sender, body: bytes, cost: int) -> Receipt:
        """Put one message into the open frame. Its room in the window is taken already."""
        frame = self.frame
        if frame is None or frame.sender is not sender or frame.cost + cost > self.frame_bytes:
            frame = self._open(sender)
        frame.bodies.append(body)
        frame.cost += cost
        if frame.cost + cost > self.frame_bytes:  # the next one like it has no room
            self.filled = True
            self.seal()
        return frame.receipt

    def seal(self) -> None:
        """Send the open frame, if there is one."""
        frame = self.frame
        if frame is not None:
            self.frame = None
            frame.sender.frames_sent += 1
            frame.sender.window.sealed(frame.cost + FRAME_COST)
            size = frame.cost - MESSAGE_COST * len(frame.bodies)
            frame.sender.send_frame(frame.bodies, size)

    def _open(self, sender: Sender) -> OpenFrame:
        self.seal()
        self._wake()
        sender.window.free -= FRAME_COST
        self.frame = OpenFrame(sender)
        return self.frame
