"""Every error the package raises on purpose, as one tree.

    OrdercastError
    ├── UsageError                 the caller's fault: the call was wrong, nothing happened
    │   ├── ConfigError            two options contradict each other          (also a ValueError)
    │   ├── MappingError           a mapping file that makes no sense         (also a ValueError)
    │   ├── MessageTooLarge        the body exceeds `max_message`             (also a ValueError)
    │   ├── OrderMismatch          the group exists with another order or protocol
    │   ├── ScopeError             a group-scoped protocol in a second overlapping group
    │   ├── AlreadyJoined          joined twice
    │   └── GroupClosed            used after leave, or after the node was closed
    ├── PeerError                  another process did wrong: counted, its connection closed
    │   └── FrameError             malformed, oversized or wrong-version bytes
    ├── JoinTimeout                no seed answered; lists each address with its reason
    ├── NodeEnded                  the stream of a node ended for a reason the application must see
    │   ├── Excluded               the others went on without this node
    │   └── SequencerLost          the process that numbers messages and views is gone
    └── TraceError                 a trace that cannot be read: file, line, column, reason

Our own mistakes are `assert`s, never members of this tree. A plain wrong argument (an empty
name, an unknown order) is a `ValueError` or `TypeError`, as everywhere in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class OrdercastError(Exception):
    """Root of all errors raised by this package."""


class UsageError(OrdercastError):
    """The caller asked for something that cannot be; nothing was done."""


class ConfigError(UsageError, ValueError):
    """Two options contradict each other. The text names both values and the rule."""


class MappingError(UsageError, ValueError):
    """A mapping file for foreign logs that makes no sense. The text names file, key and rule."""


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
    """A protocol that promises its order inside one group only, used in two overlapping groups."""


class AlreadyJoined(UsageError):
    """This node is in that group already."""


class GroupClosed(UsageError):
    """The group was left, or its node closed."""


class PeerError(OrdercastError):
    """Another process broke the protocol. Never crashes this one."""


class FrameError(PeerError):
    """Bytes from the network that are not a frame of ours."""


class JoinTimeout(OrdercastError):
    """No seed answered in time."""

    def __init__(self, reasons: Mapping[str, str], seconds: float) -> None:
        lines = "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
        super().__init__(
            f"no seed answered within {seconds:g} s ({lines or 'no seeds were given'}). "
            "Start one node with bootstrap=True, or give the address of one that runs; "
            f"`ordercast doctor {' '.join(reasons) or 'ADDRESS'}` says what is in the way"
        )
        self.reasons = dict(reasons)
        self.seconds = seconds


class NodeEnded(OrdercastError):
    """The node's stream ended, and not because the application closed it."""


class Excluded(NodeEnded):
    """The other members went on without this node."""

    def __init__(self, group: str, view: int, reason: str) -> None:
        super().__init__(
            f"this node was excluded from {group!r} in view {view}: {reason}. "
            "Start a new Node to join again"
        )
        self.group = group
        self.view = view
        self.reason = reason


class SequencerLost(NodeEnded):
    """The process that numbers messages and views is gone; nothing can be ordered any more."""

    def __init__(self, sequencer: str, reason: str) -> None:
        super().__init__(f"the sequencer {sequencer} is gone: {reason}")
        self.sequencer = sequencer
        self.reason = reason


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
