"""What nodes say to each other beside their groups, on channel 0.

a newcomer        Apply ->              <- Admitted | Redirect | Refused
to everybody      NodeUp                from the coordinator: somebody will connect to you
a pair of nodes   (Hello) ->            <- Welcome
a group           Enter ->              <- Entered | NotEntered
to send only      Visit ->              <- Entered | NotEntered
the state         StateSought ->  <- StateOffer,   StateWanted ->  <- StatePromised | StateRefused,
                  <- StateBegin, StateChunk ..., StateEnd,   StateAck ->,  StateGivenUp ->,
                  StateSettled, to everybody
trouble           Lost ->               to the coordinator
                  NotReading ->         to the members of a group
pulses            PulseKey ->           both ways
the end           Goodbye, to everybody
anybody           StatusRequest ->      <- StatusReply,  Dialback ->  <- DialbackReply
who administers   TableRequest ->       <- TableReply | Redirect | NotDone
                  MigrateRequest, DrainRequest, UndrainRequest, RefoundRequest, ForgetRequest ->
                  <- Done | UnderWay | Redirect | NotDone

Who lives, who is in the cluster and who is in a group is agreed by packets of the cluster, on a
channel of their own (see `ordercast.process.headers`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from ordercast.core.durability import Durability
from ordercast.core.ids import ProcessId
from ordercast.core.protocol import DeliveryLevel
from ordercast.membership.node_view import NodeEntry
from ordercast.runtime.foreign_text import printable
from ordercast.views.groups import GroupEntry, SlowPolicy
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.control import CONTROL_CHANNEL
from ordercast.wire.frame import Frame


class Control(msgspec.Struct, frozen=True, array_like=True):
    """Base of all messages of channel 0."""


class Apply(Control, frozen=True, repr_omit_defaults=True):
    """Let me in. Name and address stand in the Hello; these options must be equal everywhere."""

    shared: dict[str, Any]
    after: int = 0  # my last incarnation in this cluster
    former: tuple[str, ...] = ()  # nodes of the side of a partition with which I come over
    sequencer: bool = False  # I offer to number messages of groups that I am not in
    site: str = ""  # where I am; empty: I do not say
    gateway: bool = False  # I offer to be the gateway of my site
    voter: bool = True  # I may count in votes
    remembers: bool = False  # my program was in the cluster before, and still has its state


class Redirect(Control, frozen=True):
    """Ask the coordinator, over there."""

    leader: str


class Refused(Control, frozen=True):
    """You cannot come in as you are."""

    reason: str
    """One of "name", "incarnation", "config", "members", "full", "address", "site"; or, where
    asking again may help, "joining" (it is not in itself), "changing", "not_primary"."""
    text: str


class Admitted(Control, frozen=True, repr_omit_defaults=True):
    """You may come in: who you are, and who the others are. Connect to them, then ask to join."""

    me: NodeEntry
    leader: ProcessId  # the coordinator
    nodes: tuple[NodeEntry, ...]
    run: str  # under which name this cluster records
    past: tuple[tuple[str, int], ...] = ()  # names of nodes that were in it, and how often
    floor: int = 0  # names that were in it and are forgotten were in it at most so often


class NodeUp(Control, frozen=True):
    """A newcomer; it will connect to you."""

    node: NodeEntry


class NodeDown(Control, frozen=True):
    """To a newcomer: this node is gone. Do not wait for it."""

    pid: ProcessId
    reason: str


class Welcome(Control, frozen=True):
    """I know you; packets may flow on this connection."""


class Enter(Control, frozen=True, repr_omit_defaults=True):
    """I want to join a group. No protocol: any of that order. No durability, no level: any."""

    request: int
    group: str
    order: str
    protocol: str | None
    durability: Durability = None
    delivery_level: DeliveryLevel | None = None
    slow: SlowPolicy | None = None  # None: any


class Entered(Control, frozen=True):
    """The group as it is. Get ready for its packets."""

    request: int
    group: GroupEntry


class NotEntered(Control, frozen=True):
    """The group is something else, or cannot be made."""

    request: int
    have: str
    text: str  # empty: `have` is not what was wanted


class Lost(Control, frozen=True):
    """To the coordinator: that node broke the protocol, so I have hung up on it."""

    pid: ProcessId
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


class TableRequest(Control, frozen=True):
    """What stands in this table of the cluster?"""

    table: str  # one of `ordercast.runtime.placement.TABLES`
    after: str = ""  # rows whose name comes after this one


class TableReply(Control, frozen=True):
    """The payload is JSON: rows, in the order of their names."""

    more: bool  # there are rows after these


class MigrateRequest(Control, frozen=True):
    """Let that node number the messages of this group."""

    group: str
    to: str


class DrainRequest(Control, frozen=True):
    """Let that node number nothing any more: others take its groups."""

    node: str


class UndrainRequest(Control, frozen=True):
    """That node may number messages again."""

    node: str


class RefoundRequest(Control, frozen=True):
    """That group waits for nobody who is absent and may have newer state."""

    group: str


class ForgetRequest(Control, frozen=True):
    """These nodes are gone, says an operator: go on without them. None: all that are not here."""

    nodes: tuple[str, ...]  # each a name, or name#incarnation
    view: int  # the number of the node view that the operator has seen


class Done(Control, frozen=True):
    """It is as you asked."""


class UnderWay(Control, frozen=True):
    """It goes on. Ask again to hear how it ends: to ask twice is to ask once."""


class NotDone(Control, frozen=True):
    """It is not done, and why."""

    reason: str  # one of `ordercast.runtime.administration.REASONS`
    text: str


class PulseKey(Control, frozen=True):
    """When your event loop stands still, say at this UDP port of mine that you live, with this."""

    port: int
    key: bytes


class NotReading(Control, frozen=True):
    """My program has taken nothing of this group for so long; 0: it reads again."""

    group: str
    seconds: float


class Withdrawn(Control, frozen=True):
    """Its place in the list stays: a tag never changes its meaning."""


def _withdrawn(name: str, **fields: type) -> type[Control]:
    """A message of earlier releases that nobody sends any more."""
    kind = msgspec.defstruct(
        name, tuple(fields.items()), bases=(Withdrawn,), frozen=True, array_like=True
    )
    assert issubclass(kind, Control)
    return kind


CONTROLS = (
    Apply, Redirect, Refused, Admitted, NodeUp, NodeDown, Welcome, Enter, Entered, NotEntered,
    _withdrawn("Prepared", gid=int), _withdrawn("Leave", gid=int), _withdrawn("Left", gid=int),
    Lost, _withdrawn("Recall", pid=int, incarnation=int),
    _withdrawn("Evicted", group=str, view=int, reason=str), Goodbye, StatusRequest, StatusReply,
    Visit, _withdrawn("PreparedToVisit", gid=int), Dialback, DialbackReply,
    StateSought, StateOffer, StateWanted, StatePromised, StateRefused, StateBegin, StateChunk,
    StateEnd, StateAck, StateGivenUp, StateSettled,
    TableRequest, TableReply, MigrateRequest, DrainRequest, Done, UnderWay, NotDone,
    PulseKey, NotReading, UndrainRequest, RefoundRequest, ForgetRequest,
)  # fmt: skip

_codec = ChannelCodec(CONTROLS)

MAX_TEXT = 4096  # characters of a sentence that another node says

SENTENCES = {
    kind: tuple(name for name in kind.__struct_fields__ if name in ("have", "reason", "text"))
    for kind in CONTROLS
}
"""The fields of each message that errors and logs show to people."""


def encode(message: Control, payload: bytes = b"") -> bytes:
    """The frame of a control message."""
    return _codec.encode(CONTROL_CHANNEL, 0, message, payload)


def decode(frame: Frame) -> Control:
    """The control message of a frame; a `FrameError` if it is none. Its sentences are printable."""
    message = _codec.decode(frame[1], frame[3])
    assert isinstance(message, Control)
    said = {name: getattr(message, name) for name in SENTENCES[type(message)]}
    shown = {name: _shown(text) for name, text in said.items()}
    return message if shown == said else msgspec.structs.replace(message, **shown)


def _shown(text: str) -> str:
    return printable(text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}...")
