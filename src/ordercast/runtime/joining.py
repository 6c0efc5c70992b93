"""Joining and leaving a group: the two ends of a stay in it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ordercast.core.durability import Durability
from ordercast.core.ids import check_name
from ordercast.core.protocol import DeliveryLevel
from ordercast.errors import (
    AlreadyJoined,
    GroupClosed,
    NodeOut,
    OrdercastError,
    TooSlow,
    UsageError,
)
from ordercast.protocols.registry import DEFAULTS, PROTOCOLS
from ordercast.runtime.first_view import Find, first_view_came
from ordercast.runtime.guest_session import GuestSession, GuestSessions
from ordercast.runtime.join_timeouts import guest_session_did_not_end, no_first_view, not_left
from ordercast.runtime.join_with_state import JoinWithState
from ordercast.runtime.lifetime import Seat
from ordercast.runtime.membership import Membership
from ordercast.runtime.presence import Presence
from ordercast.runtime.scopes import RequestedOrder, check_scope, requested_order
from ordercast.runtime.sending import Sending
from ordercast.runtime.state import State, check_state
from ordercast.runtime.state_seeking import Memory
from ordercast.views.groups import GroupEntry, SlowPolicy

Answer = tuple[GroupEntry, asyncio.Future[None]]
"""The coordinator's answer, and a future that is done when another node coordinates."""


class ToRejoin(NamedTuple):
    """The groups of a node that is out, which it is to join again."""

    seats: dict[str, Seat]  # by the names of the groups, in the order in which they were joined
    guest_of: tuple[str, ...]  # groups that it sent to as a guest


class Joining:
    """The groups that a node is in, or is about to be in."""

    def __init__(self, presence: Presence, *, to_rejoin: ToRejoin | None = None) -> None:
        """`to_rejoin`: the groups of the former incarnation, which this one is to join again."""
        self._presence = presence
        self.guest_sessions = GuestSessions(presence)
        self._to_rejoin = to_rejoin or ToRejoin({}, ())
        self._entering: dict[str, RequestedOrder] = {}  # groups that are being joined
        self._leaving: dict[Membership, asyncio.Task[None]] = {}
        self._asks_since: dict[Seat, float] = {}  # to be a member again, by the clock of the loop
        presence.slow_readers.exclude = self._exclude

    async def join(
        self,
        name: str,
        order: str | None,
        protocol: str | None,
        scope: str | None,
        state: State | None = None,
        *,
        durability: Durability = None,
        level: DeliveryLevel | None = None,
        slow: SlowPolicy | None = None,
        seat: Seat | None = None,
        former: tuple[str, ...] = (),
    ) -> Membership:
        """Join: returns when the first view is installed, and the state is here.

        `seat`: be one again. `former`: the members, on the side of a partition from
        which this node comes over.
        """
        check_name("group", name)
        check_state(state)
        asked = requested_order(order, protocol, scope)
        self._check_new(name, seat)
        check_scope(name, asked, self._others(name))
        self._entering[name] = asked
        with_state = None if state is None else JoinWithState(self._presence, name, state)
        try:
            await self._end_leave(name)
            find = partial(self._enter, name, asked, protocol, durability, level, slow)
            found = await self._find(find)
            guest_session = await self._end_guest_session(name)
            if with_state is not None:
                await with_state.announce()
            member = await self._begin(found, find, scope, guest_session, seat, with_state, former)
            member.check_not_ended()  # out in the turn in which it was let in: see `to_rejoin`
            return member
        finally:
            del self._entering[name]
            if with_state is not None:
                with_state.close()

    async def _enter(
        self,
        name: str,
        asked: RequestedOrder,
        protocol: str | None,
        durability: Durability,
        level: DeliveryLevel | None,
        slow: SlowPolicy | None,
    ) -> GroupEntry:
        """The group, which may be there already: by another protocol, if none was named."""
        named = protocol or asked.protocol != DEFAULTS[asked.order]
        entry = await self._presence.cluster_membership.requests.enter(
            name, asked.order, asked.protocol if named else None, durability, level, slow
        )
        if entry.protocol not in PROTOCOLS:
            raise UsageError(
                f"group {name!r} uses protocol {entry.protocol!r}, which is not built into "
                "this node: it runs another version than the coordinator"
            )
        self._entering[name] = found = asked._replace(protocol=entry.protocol)
        check_scope(name, found, self._others(name))
        return entry

    async def _end_leave(self, name: str) -> None:
        """A leave may be under way, or a join that was given up is being undone."""
        timeout = self._presence.options.join_timeout
        leaving = [task for member, task in self._leaving.items() if member.group.name == name]
        if leaving:
            _, pending = await asyncio.wait(leaving, timeout=timeout)
            if pending:
                raise not_left(self._presence, name, timeout)

    async def _end_guest_session(self, name: str) -> GuestSession | None:
        """What this node sent as a guest comes before what it will send as a member."""
        timeout = self._presence.options.join_timeout
        try:
            async with asyncio.timeout(timeout):
                return await self.guest_sessions.end_to_join(name)
        except TimeoutError:
            raise guest_session_did_not_end(self._presence, name, timeout) from None

    async def sender(self, name: str) -> Sending:
        """What sends to that group: this node's membership, or a guest session, begun if need be.

        No session is begun where this node is a member, or is about to be: the machine knows one
        part of a node in a group, and the later wish would take the place of the other.
        """
        check_name("group", name)
        seat = self._to_rejoin.seats.get(name)
        if seat is not None:  # to be joined again: its stay until then says what that means
            return seat.member
        if name in self._entering:
            raise UsageError(f"this node is about to join group {name!r}: await join, then send")
        for member in self._presence.groups.memberships.values():
            if member.group.name == name:
                return member
        return await self.guest_sessions.begun(name)

    async def _find(self, find: Find) -> Answer:
        """The group; and a future that is done when another node coordinates."""
        succession = self._presence.cluster_membership.succession
        return await find(), succession

    async def _begin(
        self,
        found: Answer,
        find: Find,
        scope: str | None,
        guest_session: GuestSession | None,
        seat: Seat | None,
        with_state: JoinWithState | None,
        former: tuple[str, ...],
    ) -> Membership:
        """`find` asks the coordinator where the group is; again, if that one dies meanwhile."""
        presence = self._presence
        member: Membership | None = None
        while member is None:
            entry, succession = found
            if succession.done():  # another may have given this number to another group
                found = await self._find(find)
                continue
            member = presence.groups.open(entry, scope)
            member.guest_session = guest_session
            member.seat = seat or member.seat
            member.former = former
            if with_state is not None:
                with_state.attach(member)
            presence.cluster_membership.ask(entry, "member", former, _memory_of(seat))
            if not await self._first_view(member, find):
                presence.groups.disown(member)
                member, found = None, await self._find(find)
        if with_state is not None:
            await self._take_state(with_state, member, seat)
        return member

    async def _first_view(self, member: Membership, find: Find) -> bool:
        """True when it has come; False if the group has got another number in the meantime.

        Who comes back does not stop asking: if an empty group is founded in that moment, by one
        that remembers nothing, what this node remembers is lost.
        """
        timeout = self._presence.options.join_timeout
        try:
            while True:
                try:
                    async with asyncio.timeout(timeout):
                        return await first_view_came(self._presence, member, find)
                except TimeoutError:
                    name = member.group.name
                    reason = no_first_view(self._presence, name, timeout)
                    if self._to_rejoin.seats.get(name) is not member.seat:
                        raise reason from None
                    self._presence.lifetime.cannot_join_again(name, reason)
        except BaseException:
            self._abandon(member)
            raise

    async def _take_state(
        self, with_state: JoinWithState, member: Membership, seat: Seat | None
    ) -> None:
        memory = None if seat is None else Memory(_memory_of(seat), self._asks_since[seat])
        try:
            await with_state.take(memory, on_failure=lambda: self._abandon(member))
        except BaseException:
            self._abandon(member)
            raise

    def _check_new(self, name: str, seat: Seat | None) -> None:
        members = self._presence.groups.memberships.values()
        joined = {member.group.name for member in members if member not in self._leaving}
        returns = seat is None and name in self._to_rejoin.seats
        if name in joined or name in self._entering or returns:
            raise AlreadyJoined(f"this node is in group {name!r} already, or about to be")

    def _others(self, name: str) -> dict[str, RequestedOrder]:
        """What this node has in its other groups, or is about to have."""
        have = {
            m.group.name: RequestedOrder(m.group.order, m.group.protocol, m.scope)
            for m in self._presence.groups.memberships.values()
        }
        return {other: had for other, had in (have | self._entering).items() if other != name}

    async def rejoin(self, seat: Seat) -> None:
        """Join a group again in which the former incarnation was."""
        before, group = seat.member, seat.member.group
        self._asks_since.setdefault(seat, asyncio.get_running_loop().time())
        member = await self.join(
            group.name, group.order, group.protocol, before.scope, before.state,
            durability=group.durability, level=group.delivery_level, slow=group.slow, seat=seat,
            former=self._former_side(before),
        )  # fmt: skip
        if self._to_rejoin.seats.pop(group.name, None) is None:  # left in the meantime
            self._begin_to_leave(member)

    def _former_side(self, before: Membership) -> tuple[str, ...]:
        if not self._presence.former or before.view is None:
            return ()
        return before.view.members

    def lose(self, seat: Seat, reason: OrdercastError) -> None:
        """The node comes back without this seat. It may be about to take it."""
        self._to_rejoin.seats.pop(seat.member.group.name, None)
        for member in self._presence.groups.memberships.values():
            if member.seat is seat:
                self._abandon(member)
        self._presence.lifetime.end_stream_of(seat)
        seat.member.close(reason)

    def to_rejoin(self) -> ToRejoin:
        """The groups to join again: those of the Presence that ended, unless they were left."""
        members = {
            member.group.name: member for member in self._presence.groups.memberships.values()
        }
        seats = {
            name: member.seat
            for name, member in members.items()
            if member not in self._leaving and name not in self._entering  # that join will raise
        }
        seats |= self._to_rejoin.seats
        guest_of = dict.fromkeys((*self.guest_sessions.open, *self._to_rejoin.guest_of))
        self._to_rejoin = ToRejoin(seats, tuple(name for name in guest_of if name not in seats))
        return self._to_rejoin

    async def leave(self, member: Membership) -> None:
        """Let what was sent be ordered, then be out of the next view. Goes on if cancelled.

        A node that is out, or goes out meanwhile, has nothing to wait for: it will not come back
        to this group. One that is cut off leaves when it is in a majority again.
        """
        name = member.group.name
        if member.seat is self._to_rejoin.seats.get(name) and isinstance(member.closed, NodeOut):
            self.lose(member.seat, GroupClosed(f"group {name!r} was left"))
            return
        member.check_not_ended()
        leaving = self._begin_to_leave(member)
        out = asyncio.ensure_future(self._presence.lifetime.wait_until_out())
        try:
            await asyncio.wait((leaving, out), return_when=asyncio.FIRST_COMPLETED)
        finally:
            out.cancel()
        if leaving.done():
            with suppress(NodeOut):
                leaving.result()

    async def leave_all(self) -> None:
        """Leave every group; return when that is done, also where it was under way already."""
        await self.guest_sessions.leave_all()
        for member in tuple(self._presence.groups.memberships.values()):
            if member not in self._leaving:
                self._begin_to_leave(member)
        await asyncio.gather(*map(asyncio.shield, self._leaving.values()))

    def _exclude(self, member: Membership, reason: TooSlow) -> None:
        """The program does not read the group: the others go on without this node."""
        if member not in self._leaving:
            self._begin_to_leave(member, reason)

    def _begin_to_leave(
        self, member: Membership, reason: TooSlow | None = None
    ) -> asyncio.Task[None]:
        member.outbox.seal()
        member.close_for_senders(reason)
        leaving = self._leaving[member] = asyncio.ensure_future(self._leave(member, reason))
        leaving.add_done_callback(lambda task: self._end_of_leave(member, task))
        return leaving

    def _end_of_leave(self, member: Membership, task: asyncio.Task[None]) -> None:
        del self._leaving[member]
        if not task.cancelled():
            task.exception()  # nobody need be waiting

    async def _leave(self, member: Membership, reason: TooSlow | None) -> None:
        await self._presence.cluster_membership.leave(member)
        self._finish(member, reason)

    def _finish(self, member: Membership, reason: TooSlow | None) -> None:
        if reason is not None:
            self._presence.lifetime.end_stream_of(member.seat, reason)
        if self._presence.error is None:
            self._presence.groups.close(member)
        member.close(reason or GroupClosed(f"group {member.group.name!r} was left"))

    def _abandon(self, member: Membership) -> None:
        """A join was given up: leave, or withdraw the request to be let in."""
        member.seat = Seat(member, self._presence.lifetime.inbox)  # the old one is for the next try
        if member.giver is not None:  # without its state nobody must see what it delivers
            member.mute()
        if self._presence.error is None and not member.has_ended:
            self._begin_to_leave(member)


def _memory_of(seat: Seat | None) -> int:
    """The last view of the group that the program has seen, if it was in it before."""
    before = None if seat is None else seat.member.view
    return 0 if before is None else before.number


def check_group_stream(member: Membership) -> None:
    """May the group be read by itself? Only if that cannot break the order of the domain."""
    others = member.presence.groups.neighbours(member)
    if others and member.scope != "group":
        names = ", ".join(repr(other.group.name) for other in others)
        raise UsageError(
            f"this node is also in {names}, by the same protocol: two loops could "
            "take messages in another order than they were delivered in. Read the node's stream "
            f"(async for event in node), or join {member.group.name!r} with scope='group'"
        )
