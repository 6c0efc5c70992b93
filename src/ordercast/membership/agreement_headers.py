"""The packets by which nodes agree on who is in the cluster."""

from __future__ import annotations

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId


class Ballot(msgspec.Struct, frozen=True, order=True, array_like=True):
    """One try to decide what comes after a view. Of two the higher one counts."""

    n: int
    by: ProcessId


class Heartbeat(msgspec.Struct, frozen=True, array_like=True):
    """I live, and this is the view that I have."""

    view: ViewId
    accepted: bool = False  # I have accepted a proposal of what comes after it


class Suspect(msgspec.Struct, frozen=True, array_like=True):
    """To all who vote: I hear nothing from that node of the view."""

    view: ViewId
    pid: ProcessId


class Renew(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: I was cut off, and packets may be lost. Begin the view again."""

    view: ViewId


class JoinView(msgspec.Struct, frozen=True, array_like=True):
    """Take me into the cluster."""

    node: NodeEntry


class Introduce(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: this node asked me to be let in."""

    view: ViewId
    node: NodeEntry


class Reach(msgspec.Struct, frozen=True, array_like=True):
    """From the coordinator: say so when you have a connection to this node, which wants in."""

    view: ViewId
    pid: ProcessId


class Reached(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: there is one."""

    view: ViewId
    pid: ProcessId


class LeaveView(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator, until it is so: I am in no group any more, and go for good."""

    view: ViewId


class Forget(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator, from an operator: these nodes are gone, and count in no vote; an empty
    list means all that are not here."""

    view: ViewId
    pids: tuple[ProcessId, ...]


class EndView(msgspec.Struct, frozen=True, array_like=True):
    """The view is to end: promise to follow no lower ballot, and report."""

    view: ViewId
    ballot: Ballot


class ViewReport(msgspec.Struct, frozen=True, array_like=True):
    """I promise. This is the highest proposal that I have accepted, if any."""

    view: ViewId
    ballot: Ballot
    accepted: Ballot | None = None
    proposal: NodeView | None = None


class ProposeView(msgspec.Struct, frozen=True, array_like=True):
    """This is to come after the view."""

    view: ViewId
    ballot: Ballot
    next: NodeView


class ViewAccepted(msgspec.Struct, frozen=True, array_like=True):
    """I accept it."""

    view: ViewId
    ballot: Ballot


class InstallView(msgspec.Struct, frozen=True, array_like=True):
    """It is decided; or it was, and you do not have it."""

    next: NodeView


class Overruled(msgspec.Struct, frozen=True, array_like=True):
    """To one that leads: this ballot was promised here, and yours is not above it, or is too far
    above it."""

    view: ViewId
    promised: Ballot


class Sighted(msgspec.Struct, frozen=True, array_like=True):
    """From another side of a partition, or to our coordinator about one: there is a side with so
    many nodes."""

    coordinator: ProcessId
    size: int


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator of another side: we would come over to you."""


class Welcome(msgspec.Struct, frozen=True, array_like=True):
    """Come. We shall be here."""


AGREEMENT_HEADERS: tuple[type[msgspec.Struct], ...] = (
    Heartbeat, Suspect, Renew, JoinView, Introduce, Reach, Reached, LeaveView, Forget, EndView,
    ViewReport, ProposeView, ViewAccepted, InstallView, Overruled, Sighted, Offer, Welcome,
)  # fmt: skip
