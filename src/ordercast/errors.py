"""Every error the package raises on purpose, as one tree.

    OrdercastError
    ├── UsageError                 the caller's fault: the call was wrong, nothing happened
    │   ├── ConfigError            two options contradict each other          (also a ValueError)
    │   ├── MappingError           a mapping file is wrong                    (also a ValueError)
    │   ├── MessageTooLarge        the body exceeds `max_message`             (also a ValueError)
    │   ├── OrderMismatch          the group exists with another order or protocol
    │   ├── ScopeError             the order would not hold between two groups of this node
    │   ├── AlreadyJoined          this node is in the group already
    │   ├── NameTaken              another node of the cluster has that name
    │   ├── StateUnavailable       no member could give the state that a joiner asked for
    │   └── GroupClosed            used after leave, or after the node was closed
    │       └── TooSlow            this program did not read the group, so its node left it
    ├── PeerError                  another process broke the protocol: counted, connection closed
    │   └── FrameError             malformed, oversized or wrong-version bytes
    ├── JoinTimeout                no cluster, or no group, let this node in; lists why by address
    ├── NodeEnded                  the stream of a node ended for a reason the application must see
    │   └── NodeOut                ... and goes on when the node is back, unless rejoin=False
    │       ├── Excluded           the others went on without this node
    │       ├── NotPrimary         this node is on the smaller side of a partition
    │       ├── MachineFailed      a bug in Ordercast stopped this node; it comes back by itself
    │       └── Dissolved          this side of a partition joins the other one; never in a stream
    └── TraceError                 a trace that cannot be read: file, line, column, reason

Bugs of this package are `assert`s, never members of this tree: `MachineFailed` only says that a
node met one, and comes back. A plain wrong argument (an empty name, an unknown order) is a
`ValueError` or `TypeError`, as everywhere in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar


class OrdercastError(Exception):
    """Root of all errors raised by this package."""


class UsageError(OrdercastError):
    """The caller asked for something that cannot be; nothing was done."""


class ConfigError(UsageError, ValueError):
    """Two options contradict each other. The text names both values and the rule."""


class MappingError(UsageError, ValueError):
    """A mapping file for foreign logs is wrong. The text names the file, the key and the rule."""


class MessageTooLarge(UsageError, ValueError):
    """A body exceeds the limit; nothing was sent."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the message has {size} bytes, the limit is {limit} (option max_message={limit})"
        )
        self.size = size
        self.limit = limit


class OrderMismatch(UsageError):
    """The group exists already and promises something else."""

    def __init__(self, group: str, have: str, want: str) -> None:
        super().__init__(
            f"group {group!r} has {have}; this join asked for {want}. "
            f"A group's order is fixed when it is created: join it with {have}, or use another name"
        )
        self.group = group
        self.have = have
        self.want = want


class ScopeError(UsageError):
    """The join asks for an order across groups, or may seem to, and the protocol would keep it only
    inside each group. The text names protocols that keep it across groups, if there are any."""


class AlreadyJoined(UsageError):
    """This node is in that group already."""


class NameTaken(UsageError):
    """Another node of this name is in the cluster."""


class StateUnavailable(UsageError):
    """A join with `state=` got no state. It was undone: this node is not in the group."""

    def __init__(self, group: str, reasons: Mapping[str, str]) -> None:
        lines = "; ".join(f"{member}: {reason}" for member, reason in reasons.items())
        super().__init__(
            f"no member of group {group!r} gave its state ({lines}). Join without state= to start "
            "from nothing, or have a member join with state= first"
        )
        self.group = group
        self.reasons = dict(reasons)


class GroupClosed(UsageError):
    """The group was left, or its node was closed."""


class TooSlow(GroupClosed):
    """This program did not read a group with `slow="exclude"`, so its node left the group."""

    def __init__(self, group: str, seconds: float, frames: int) -> None:
        super().__init__(
            f"this node left group {group!r}: its program had taken nothing of it for "
            f"{seconds:.0f} s while {frames} frames waited (slow='exclude'). What was delivered "
            "before is still in the stream; join the group again when the program can read it"
        )
        self.group = group


class PeerError(OrdercastError):
    """Another process broke the protocol. That never ends this one."""


class FrameError(PeerError):
    """Bytes from the network that are not a frame of ours."""


class JoinTimeout(OrdercastError):
    """A node was not let into the cluster, or into a group, in time."""

    def __init__(
        self, reasons: Mapping[str, str], seconds: float, *, what: str, advice: str
    ) -> None:
        """`what` names the thing that did not happen; `reasons` say by address why."""
        lines = "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
        super().__init__(
            f"{what} within {seconds:g} s ({lines or 'no seeds were given'}). {advice}"
        )
        self.reasons = dict(reasons)
        self.seconds = seconds


class NodeEnded(OrdercastError):
    """The node's stream ended, and not because the application closed it."""


class NodeOut(NodeEnded):
    """The node is out of its cluster, and comes back by itself unless it has `rejoin=False`.

    A stream raises it once, after what was in order, and goes on when it is read again.
    """

    in_stream: ClassVar[bool] = True  # is it raised by the stream that the application reads?


class Excluded(NodeOut):
    """The other members went on without this node."""

    def __init__(self, group: str, view: int, reason: str, *, rejoins: bool = True) -> None:
        super().__init__(
            f"this node was excluded from {group} in node view {view}: {reason}. {_hope(rejoins)}"
        )
        self.group = group
        self.view = view
        self.reason = reason


class NotPrimary(NodeOut):
    """This node reaches too few nodes of its last view to go on. The others may go on."""

    def __init__(
        self, view: int, missing: tuple[str, ...], *, rejoins: bool = True, way_out: str = ""
    ) -> None:
        """`way_out` says what brings this node back, and what an operator can do."""
        super().__init__(
            f"this node is cut off: of node view {view} it cannot reach {', '.join(missing)}, and "
            f"the rest is no majority. {(rejoins and way_out) or _hope(rejoins)}"
        )
        self.view = view
        self.missing = missing


class MachineFailed(NodeOut):
    """A bug in Ordercast: the state machine of this node failed, and is not used any more. The
    `__cause__` is the error. The node comes back with a new state machine, a few times."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"the state machine of this node failed ({type(error).__name__}: {error}). This is a "
            f"bug in Ordercast: please report it. {_hope(True)}"
        )
        self.__cause__ = error


class Dissolved(NodeOut):
    """The views of this side of a partition ended in order: its nodes join the other side."""

    in_stream = False

    def __init__(self) -> None:
        super().__init__("this node is joining the other side of a partition that has ended")


def _hope(rejoins: bool) -> str:
    if rejoins:
        return "It comes back by itself: go on reading the stream"
    return "Start a new Node to join again (rejoin=False)"


class TraceError(OrdercastError, ValueError):
    """A trace that cannot be read. Nothing of it is judged."""

    def __init__(self, file: str | Path, line: int | None, column: str | None, reason: str) -> None:
        where = str(file) if line is None else f"{file}:{line}"
        if column is not None:
            where += f", column {column!r}"
        super().__init__(f"{where}: {reason}")
        self.file = str(file)
        self.line = line
        self.column = column
        self.reason = reason


class TraceTooLarge(OrdercastError, ValueError):
    """Judging a trace in this process would take more memory than is free."""

    def __init__(self, needed: int, free: int) -> None:
        super().__init__(
            f"judging this in one process takes about {needed / 2**30:,.1f} GiB of memory, and "
            f"{free / 2**30:,.1f} GiB are free: `ordercast verify` judges it with Spark, on this "
            "machine or on a cluster"
        )
        self.needed = needed
        self.free = free
