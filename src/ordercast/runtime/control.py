"""What nodes say to each other beside their groups, on channel 0.

a newcomer        Apply ->              <- Admitted | Redirect | Refused
to everybody      NodeUp, NodeDown      from the leader
a pair of nodes   (Hello) ->            <- Welcome
a group           Enter ->              <- Entered | NotEntered,  Prepared ->,  Leave ->,  Left ->
to send only      Visit ->              <- Entered | NotEntered,  PreparedToVisit ->,  Leave, Left
trouble           Lost -> (a member reports another),  Recall ->  <- Evicted
the state         StateSought ->  <- StateOffer,   StateWanted ->  <- StatePromised | StateRefused,
                  <- StateBegin, StateChunk ..., StateEnd,   StateAck ->,  StateGivenUp ->,
                  StateSettled, to everybody
the end           Goodbye, to everybody
anybody           StatusRequest ->      <- StatusReply,  Dialback ->  <- DialbackReply
"""

from __future__ import annotations

from typing import Any

import msgspec

from ordercast.core.durability import Durability, in_words
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


class GroupEntry(msgspec.Struct, frozen=True, array_like=True, repr_omit_defaults=True):
    """One group of the cluster. Its number is the channel of its packets."""

    gid: GroupId
    name: str
    order: str
    protocol: str
    header_version: int  # of that protocol's headers: both sides must read the same
    durability: Durability = None  # how many must hold what is delivered

    @property
    def promise(self) -> str:
        """How a mismatch is told to people."""
        how = ", ".join(filter(None, (f"protocol {self.protocol!r}", in_words(self.durability))))
        return f"order {self.order!r} ({how})"


class Apply(Control, frozen=True):
    """Let me in. Name and address stand in the Hello; these options must be equal everywhere."""

    shared: dict[str, Any]


class Redirect(Control, frozen=True):
    """Ask the leader, over there."""

    leader: str


class Refused(Control, frozen=True):
    """You cannot come in as you are."""

    reason: str  # "name", "config", "members", "full", "address", "joining"
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


class Enter(Control, frozen=True, repr_omit_defaults=True):
    """I want to join a group. No protocol: any that gives the order. No durability: any."""

    request: int
    group: str
    order: str
    protocol: str | None
    durability: Durability = None


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


class StateSought(Control, frozen=True):
    """I am about to join this group and want its state: note what you take from my view on."""

    group: str


class StateOffer(Control, frozen=True):
    """My place in the group's view, if I can give its state; else -1."""

    group: str
    place: int


class StateWanted(Control, frozen=True):
    """Give me the state of this group, as it is before the view that lets me in, or later."""

    transfer: int  # how I call it
    group: str
    view: int  # my first one; 0: I am not in it yet


class StatePromised(Control, frozen=True):
    """You get it when my program comes to your view."""

    transfer: int


class StateRefused(Control, frozen=True):
    """You do not get it from me."""

    transfer: int
    reason: str  # one of `ordercast.runtime.state_giving.REFUSALS`
    text: str


class StateBegin(Control, frozen=True):
    """My state follows."""

    transfer: int
    view: int  # the last one that is in it
    size: int  # bytes
    taken: tuple[tuple[ProcessId, tuple[tuple[int, int], ...]], ...]
    """Messages since your first view that are in it: by sender, ranges of their numbers."""


class StateChunk(Control, frozen=True):
    """The payload is the next piece."""

    transfer: int
    offset: int


class StateEnd(Control, frozen=True):
    """That was all of it."""

    transfer: int
    digest: bytes


class StateAck(Control, frozen=True):
    """I have so many bytes of it."""

    transfer: int
    received: int


class StateGivenUp(Control, frozen=True):
    """I do not want it from you any more."""

    transfer: int


class StateSettled(Control, frozen=True):
    """I have the state of this group, or will not have it: note nothing for me any more."""

    group: str


CONTROLS = (
    Apply, Redirect, Refused, Admitted, NodeUp, NodeDown, Welcome, Enter, Entered, NotEntered,
    Prepared, Leave, Left, Lost, Recall, Evicted, Goodbye, StatusRequest, StatusReply,
    Visit, PreparedToVisit, Dialback, DialbackReply,
    StateSought, StateOffer, StateWanted, StatePromised, StateRefused, StateBegin, StateChunk,
    StateEnd, StateAck, StateGivenUp, StateSettled,
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
