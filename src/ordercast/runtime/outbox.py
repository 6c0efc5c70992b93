"""Messages become frames: at most one open frame in a domain.

Here a domain is all groups of a node by the same protocol. Its open frame is sealed

- by a multicast to another group of the domain. With one open frame per *group*, a to g1, b to g2,
  c to g1 in one turn would leave as {a, c} and {b}: in either order FIFO is broken;
- when the next message would exceed the byte limit;
- at the end of the loop's turn. So a lone message leaves at once and no timer ever delays it,
  while a busy sender's frames grow.

A sender that always finds room would never suspend. It lets the event loop turn when a frame is
full, and in any case after `TURN_SECONDS`: frames that never fill, because the group changes with
every message, cost as much time as full ones.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Protocol

from ordercast.runtime.inbox import TURN_SECONDS
from ordercast.runtime.options import FRAME_COST, MESSAGE_COST
from ordercast.runtime.receipt import Progress, Receipt
from ordercast.runtime.window import Window

PAID_AHEAD = 16  # messages at most, and fewer than the frame has already


class Sender(Protocol):
    """What an outbox needs to know of a group."""

    progress: Progress
    window: Window
    frames_sent: int

    def send_frame(self, bodies: list[bytes], size: int) -> None:
        """Number the messages (`size` bytes in all), record them and multicast the frame."""


class OpenFrame:
    """Messages of one group that leave together."""

    __slots__ = ("bodies", "cost", "paid", "receipt", "sender")

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.bodies: list[bytes] = []
        self.cost = 0  # of all messages
        self.paid = 0  # room taken for them and for a few more, which are added without a look
        self.receipt = Receipt(sender.progress, sender.frames_sent + 1)


class Outbox:
    """The open frame of one domain."""

    def __init__(self, frame_bytes: int, wake: Callable[[], None]) -> None:
        self.frame_bytes = frame_bytes
        self.frame: OpenFrame | None = None
        self.is_due = False  # a frame is full, or it is late: the next multicast lets the loop turn
        self._turn_at = inf  # when it is late; counted from the first frame of this turn
        self._wake = wake  # ask for `end_turn`

    def add(self, sender: Sender, body: bytes, cost: int) -> Receipt:
        """Put one message into the open frame. Its room in the window is taken already."""
        frame = self.frame
        if frame is None or frame.sender is not sender or frame.cost + cost > self.frame_bytes:
            frame = self._open(sender)
        frame.bodies.append(body)
        frame.cost += cost
        frame.paid += cost
        if frame.cost + cost > self.frame_bytes:  # the next one like it has no room
            self.is_due = True
            self.seal()
        elif monotonic() >= self._turn_at:
            self.is_due = True
        else:
            self._pay_ahead(frame, cost)
        return frame.receipt

    def _pay_ahead(self, frame: OpenFrame, cost: int) -> None:
        """Room for a few messages like this one: they need no look at windows and clock."""
        few = min(len(frame.bodies) - 1, PAID_AHEAD) * cost
        amount = min(few, self.frame_bytes - cost - frame.paid, frame.sender.window.room)
        if amount > 0:
            frame.sender.window.take(amount)
            frame.paid += amount

    def end_turn(self) -> None:
        """The event loop turns."""
        self.seal()
        self.is_due = False
        self._turn_at = inf

    def seal(self) -> None:
        """Send the open frame, if there is one."""
        frame = self.frame
        if frame is not None:
            self.frame = None
            frame.sender.frames_sent += 1
            if frame.paid > frame.cost:
                frame.sender.window.give_back(frame.paid - frame.cost)
            frame.sender.window.sealed(frame.cost + FRAME_COST)
            size = frame.cost - MESSAGE_COST * len(frame.bodies)
            frame.sender.send_frame(frame.bodies, size)

    def _open(self, sender: Sender) -> OpenFrame:
        self.seal()
        self._wake()
        if self._turn_at == inf:
            self._turn_at = monotonic() + TURN_SECONDS
        sender.window.take(FRAME_COST)
        self.frame = OpenFrame(sender)
        return self.frame
