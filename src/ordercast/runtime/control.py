"""What nodes say to each other beside their groups, on channel 0.

a newcomer        Apply ->              <- Admitted | Redirect | Refused
to everybody      NodeUp, NodeDown      from the leader
a pair of nodes   (Hello) ->            <- Welcome
a group           Enter ->              <- Entered | NotEntered,  Prepared ->,  Leave ->,  Left ->
to send only      Visit ->              <- Entered | NotEntered,  PreparedToVisit ->,  Leave, Left
trouble           Lost -> (a member reports another),  Recall ->  <- Evicted
the end           Goodbye, to everybody
anybody           StatusRequest ->      <- StatusReply,  Dialback ->  <- DialbackReply
"""

from __future__ import annotations

from typing import Any

import msgspec

from ordercast.core.ids import GroupId, Identity, ProcessId
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.control import CONTROL_CHANNEL
from ordercast.wire.frame import Frame


class Control(msgspec.Struct, frozen=True, array_like=True):
    """Base of all messages of channel 0."""


class NodeEntry(msgspec.Struct, frozen=True, array_like=True):
    """One node of the cluster."""

    pid: ProcessId
    name: str
    incarnation: int
    address: str  # where others reach it

    @property
    def identity(self) -> str:
        """As in traces: alice#2."""
        return str(Identity(self.name, self.incarnation))


class GroupEntry(msgspec.Struct, frozen=True, array_like=True):
    """One group of the cluster. Its number is the channel of its packets."""

    gid: GroupId
    name: str
    order: str
    protocol: str
    header_version: int  # of that protocol's headers: both sides must read the same

    @property
    def promise(self) -> str:
        """How a mismatch is told to people."""
        return f"order {self.order!r} (protocol {self.protocol!r})"


class Apply(Control, frozen=True):
    """Let me in. Name and address stand in the Hello; these options must be equal everywhere."""

    shared: dict[str, Any]


class Redirect(Control, frozen=True):
    """Ask the leader, over there."""

    leader: str


class Refused(Control, frozen=True):
    """You cannot come in as you are."""

    reason: str  # "name", "config", "members", "full", "address"
    text: str


class Admitted(Control, frozen=True):
    """You are in: who you are, and who the others are."""

    me: NodeEntry
    leader: ProcessId
    nodes: tuple[NodeEntry, ...]
    run: str  # under which name this cluster records


class NodeUp(Control, frozen=True):
    """A newcomer; it will connect to you."""

    node: NodeEntry


class NodeDown(Control, frozen=True):
    """This node is gone for good."""

    pid: ProcessId
    reason: str


class Welcome(Control, frozen=True):
    """I know you; packets may flow on this connection."""


class Enter(Control, frozen=True):
    """I want to join a group. No protocol: any that gives the order."""

    request: int
    group: str
    order: str
    protocol: str | None


class Entered(Control, frozen=True):
    """The group as it is. Get ready for its packets."""

    request: int
    group: GroupEntry


class NotEntered(Control, frozen=True):
    """The group is something else, or cannot be made."""

    request: int
    have: str
    text: str  # empty: `have` is not what was wanted


class Prepared(Control, frozen=True):
    """I can read packets of the group: put me into the next view."""

    gid: GroupId


class Leave(Control, frozen=True):
    """Take me out of the group in its next view."""

    gid: GroupId


class Left(Control, frozen=True):
    """I am out of the group, and have acknowledged everything up to my last view."""

    gid: GroupId


class Lost(Control, frozen=True):
    """My connection to that node broke."""

    pid: ProcessId
    reason: str


class Recall(Control, frozen=True):
    """My connection to you broke: am I still in?"""

    pid: ProcessId
    incarnation: int


class Evicted(Control, frozen=True):
    """The others went on without you."""

    group: str
    view: int
    reason: str


class Goodbye(Control, frozen=True):
    """I am leaving for good; do not take the end of this connection for a crash."""


class StatusRequest(Control, frozen=True):
    """How are you?"""


class StatusReply(Control, frozen=True):
    """The payload is JSON."""


class Visit(Control, frozen=True):
    """I want to send to a group without being a member. It must exist."""

    request: int
    group: str


class PreparedToVisit(Control, frozen=True):
    """I can read packets of the group: name me among the guests of its next view."""

    gid: GroupId


class Dialback(Control, frozen=True):
    """Can you reach me? Connect to this port of the host that I speak from."""

    port: int


class DialbackReply(Control, frozen=True):
    """What came of it."""

    outcome: str  # "reached", "failed", "busy"
    text: str  # why, or whom


CONTROLS = (
    Apply, Redirect, Refused, Admitted, NodeUp, NodeDown, Welcome, Enter, Entered, NotEntered,
    Prepared, Leave, Left, Lost, Recall, Evicted, Goodbye, StatusRequest, StatusReply,
    Visit, PreparedToVisit, Dialback, DialbackReply,
)  # fmt: skip

_codec = ChannelCodec(CONTROLS)


def encode(message: Control, payload: bytes = b"") -> bytes:
    """The frame of a control message."""
    return _codec.encode(CONTROL_CHANNEL, 0, message, payload)


def decode(frame: Frame) -> Control:
    """The control message of a frame; a `FrameError` if it is none."""
    message = _codec.decode(frame[1], frame[3])
    assert isinstance(message, Control)
    return message
