"""The groups of a node: those that it is in, and those that it sends to as a guest.

Groups of one protocol that keeps an order across groups share a box for what is sent and a barrier
for what is delivered, as they share a machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core.ids import GroupId
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.guest_session import GuestSession
from ordercast.runtime.membership import Membership
from ordercast.runtime.outbox import Outbox
from ordercast.runtime.state_barrier import StateBarrier
from ordercast.views.groups import GroupEntry

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence


MAX_LEFT = 4096  # groups that this node has left last: it goes on where it was in each of them
MAX_NAMES = 65_536  # of groups, for people: those that were heard of last


class LastNames(dict[GroupId, str]):
    """Names of the groups that this node heard of last."""

    def __setitem__(self, gid: GroupId, name: str) -> None:
        """The oldest is forgotten, if there are too many."""
        self.pop(gid, None)
        super().__setitem__(gid, name)
        if len(self) > MAX_NAMES:
            del self[next(iter(self))]


class OwnGroups:
    """The groups of one `Presence`."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self.memberships: dict[GroupId, Membership] = {}
        self.guest_sessions: dict[GroupId, GuestSession] = {}  # to groups of others
        self.unread_memberships: list[Membership] = []  # also former ones
        self.names = LastNames()
        self._outboxes: dict[str, Outbox] = {}  # by protocol, as the machines of domains are
        self._barriers: dict[str, StateBarrier] = {}  # the same for deliveries
        self._first_message: dict[str, int] = {}  # numbers go on when a group is joined again
        self._floor = 1  # ... and begin here in every other group: above all that were forgotten

    def senders(self) -> tuple[Membership | GuestSession, ...]:
        """All groups to which this node may send."""
        return (*self.memberships.values(), *self.guest_sessions.values())

    def neighbours(self, member: Membership) -> list[Membership]:
        """The other groups of the same domain."""
        return [
            m for m in self.memberships.values() if m.outbox is member.outbox and m is not member
        ]

    def seal_frames(self) -> None:
        """Send all open frames."""
        for outbox in self._outboxes.values():
            outbox.seal()

    def end_turn(self) -> None:
        """The event loop turns: open frames leave."""
        for outbox in self._outboxes.values():
            outbox.end_turn()

    # -- in a group -------------------------------------------------------------------------------

    def open(self, group: GroupEntry, scope: str | None) -> Membership:
        """Get ready for packets of a group."""
        first_message = self._first_message.get(group.name, self._floor)
        barrier = self._barrier(group.protocol)
        member = Membership(self._presence, group, scope, self._open(group), first_message, barrier)
        self.memberships[group.gid] = member
        self._block_with_the_node(member)
        self.unread_memberships = [one for one in self.unread_memberships if not one.over]
        self.unread_memberships.append(member)
        recorder = self._presence.recorder
        if recorder is not None:
            promised = scope or PROTOCOLS[group.protocol].declaration.scope
            recorder.group(
                group.name, (), order=group.order, protocol=group.protocol, scope=promised
            )
        return member

    def _barrier(self, protocol: str) -> StateBarrier:
        """The gate of the domain, if the protocol orders across groups; else of the group."""
        if PROTOCOLS[protocol].declaration.scope == "group":
            return StateBarrier()
        return self._barriers.setdefault(protocol, StateBarrier())

    def _open(self, group: GroupEntry) -> Outbox:
        """Packets of the group can be read; what is sent to it goes into this box."""
        presence = self._presence
        self.names[group.gid] = group.name
        presence.engine.open(group)
        if group.protocol not in self._outboxes:
            self._outboxes[group.protocol] = Outbox(presence.options.frame_bytes, presence.wake)
        return self._outboxes[group.protocol]

    def _block_with_the_node(self, sending: Membership | GuestSession) -> None:
        """A group that was asked for may be opened while this node is cut off."""
        if self._presence.blocked is not None:
            sending.block(self._presence.blocked)

    def mistaken(self, gid: GroupId) -> None:
        """Another group has this number: what was asked for under it must be asked for again."""
        self._presence.engine.renumbered(gid)
        for sending in (self.memberships.get(gid), self.guest_sessions.get(gid)):
            if sending is not None and not sending.mistaken.done():
                sending.mistaken.set_result(None)

    def disown(self, sending: Membership | GuestSession) -> None:
        """Undo a join or a visit: its group has got another number meanwhile."""
        g = sending.group.gid
        self._presence.cluster_membership.quit(g)
        if isinstance(sending, GuestSession):
            self.guest_sessions.pop(g, None)
        else:
            sending.muted = True
            sending.barrier.admit(sending)
            self.memberships.pop(g, None)
        self._presence.engine.leave(g)

    def close(self, member: Membership) -> None:
        """The group was left. With its last view the stack has acknowledged everything."""
        self._remember(member)
        del self.memberships[member.group.gid]
        self._presence.lifetime.end_stream_of(member.seat)
        self._presence.engine.leave(member.group.gid)

    def _remember(self, sending: Membership | GuestSession) -> None:
        """The number of its next message, should this node come to that group again: no two
        messages of one incarnation have the same number in a group."""
        name, numbers = sending.group.name, self._first_message
        numbers.pop(name, None)
        numbers[name] = sending.next_message
        if len(numbers) > MAX_LEFT:
            self._floor = max(self._floor, numbers.pop(next(iter(numbers))))

    # -- as a guest -------------------------------------------------------------------------------

    def open_guest_session(self, group: GroupEntry) -> GuestSession:
        """Get ready to be a guest of a group."""
        first_message = self._first_message.get(group.name, self._floor)
        session = GuestSession(self._presence, group, self._open(group), first_message)
        self.guest_sessions[group.gid] = session
        self._block_with_the_node(session)
        return session

    def close_guest_session(self, session: GuestSession) -> None:
        """This node is a guest no longer."""
        self._remember(session)
        del self.guest_sessions[session.group.gid]
        self._presence.engine.leave(session.group.gid)
