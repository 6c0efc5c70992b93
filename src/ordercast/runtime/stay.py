"""Joining and leaving a group: the two ends of a stay in it."""

from __future__ import annotations

import asyncio

from ordercast.core.ids import check_name
from ordercast.errors import AlreadyJoined, GroupClosed, JoinTimeout, UsageError
from ordercast.protocols.registry import DEFAULTS, PROTOCOLS
from ordercast.runtime.control import GroupEntry
from ordercast.runtime.membership import Membership
from ordercast.runtime.scopes import Wish, check_scope, wish
from ordercast.runtime.sending import Sending
from ordercast.runtime.site import Site
from ordercast.runtime.visit import Visit, Visits


class Stays:
    """The groups that a node is in, or is about to be in."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.visits = Visits(site)
        self._entering: dict[str, Wish] = {}  # groups that are being joined
        self._leaving: dict[Membership, asyncio.Task[None]] = {}

    async def join(
        self, name: str, order: str | None, protocol: str | None, scope: str | None
    ) -> Membership:
        """Be a member: returns when the first view is installed."""
        check_name("group", name)
        asked = wish(order, protocol, scope)
        self._check_new(name)
        check_scope(name, asked, self._others(name))
        self._entering[name] = asked
        try:
            entry = await self._enter(name, asked, protocol)
            visit = await self._end_visit(name)
            return await self._begin(entry, scope, visit)
        finally:
            del self._entering[name]

    async def _enter(self, name: str, asked: Wish, protocol: str | None) -> GroupEntry:
        """The group, which may be there already: by another protocol, if none was named."""
        named = protocol or asked.protocol != DEFAULTS[asked.order]
        entry = await self._site.role.enter(name, asked.order, asked.protocol if named else None)
        if entry.protocol not in PROTOCOLS:
            raise UsageError(
                f"group {name!r} uses protocol {entry.protocol!r}, which is not built into "
                "this node: it runs another version than the leader"
            )
        self._entering[name] = found = asked._replace(protocol=entry.protocol)
        check_scope(name, found, self._others(name))
        return entry

    async def _end_visit(self, name: str) -> Visit | None:
        """What this node sent as a guest comes before what it will send as a member."""
        timeout = self._site.options.join_timeout
        try:
            async with asyncio.timeout(timeout):
                return await self.visits.end_to_join(name)
        except TimeoutError:
            reason = {name: "what this node sent as a guest has no place yet"}
            raise JoinTimeout(reason, timeout) from None

    async def sender(self, name: str) -> Sending:
        """What sends to that group: this node's membership, or a visit, begun if need be."""
        check_name("group", name)
        if name in self._entering:
            raise UsageError(f"this node is about to join group {name!r}: await join, then send")
        for member in self._site.memberships.values():
            if member.group.name == name:
                return member
        return await self.visits.begun(name)

    async def _begin(self, entry: GroupEntry, scope: str | None, visit: Visit | None) -> Membership:
        site = self._site
        member = site.open_membership(entry, scope)
        member.visit = visit
        site.role.prepared(entry.gid)
        timeout = site.options.join_timeout
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(member.installed)
        except TimeoutError:
            self._abandon(member)
            reason = {entry.name: "its first view did not come; a member may be stuck"}
            raise JoinTimeout(reason, timeout) from None
        except asyncio.CancelledError:
            self._abandon(member)
            raise
        return member

    def _check_new(self, name: str) -> None:
        joined = {member.group.name for member in self._site.memberships.values()}
        if name in joined or name in self._entering:
            raise AlreadyJoined(f"this node is in group {name!r} already, or about to be")

    def _others(self, name: str) -> dict[str, Wish]:
        """What this node has in its other groups, or is about to have."""
        have = {
            m.group.name: Wish(m.group.order, m.group.protocol, m.scope)
            for m in self._site.memberships.values()
        }
        return {other: had for other, had in (have | self._entering).items() if other != name}

    async def leave(self, member: Membership) -> None:
        """Let what was sent be ordered, then be out of the next view. Goes on if cancelled."""
        member.check_open()
        await asyncio.shield(self._begin_to_leave(member))

    async def leave_all(self) -> None:
        """Be out of every group, those included that are being left already."""
        await self.visits.leave_all()
        for member in tuple(self._site.memberships.values()):
            if member not in self._leaving:
                self._begin_to_leave(member)
        await asyncio.gather(*map(asyncio.shield, self._leaving.values()))

    def _begin_to_leave(self, member: Membership) -> asyncio.Task[None]:
        member.outbox.seal()
        member.close_for_senders()
        leaving = self._leaving[member] = asyncio.ensure_future(self._leave(member))
        leaving.add_done_callback(lambda task: self._end_of_leave(member, task))
        return leaving

    def _end_of_leave(self, member: Membership, task: asyncio.Task[None]) -> None:
        del self._leaving[member]
        if not task.cancelled():
            task.exception()  # nobody need be waiting

    async def _leave(self, member: Membership) -> None:
        await member.progress.ordered.wait_for(member.frames_sent)
        self._site.role.leave(member.group.gid)
        await asyncio.shield(member.gone)
        self._finish(member)

    def _finish(self, member: Membership) -> None:
        if self._site.error is None:
            self._site.close_membership(member)
        member.close(GroupClosed(f"group {member.group.name!r} was left"))

    def _abandon(self, member: Membership) -> None:
        """A join that was given up: leave as soon as there is something to leave."""
        if self._site.error is None:
            self._begin_to_leave(member)


def check_group_stream(site: Site, member: Membership) -> None:
    """May the group be read by itself? Only if that cannot break the order of the domain."""
    others = site.neighbours(member)
    if others and member.scope != "group":
        names = ", ".join(repr(other.group.name) for other in others)
        raise UsageError(
            f"this node is also in {names}, by the same protocol: two loops could "
            "take messages in another order than they were delivered in. Read the node's stream "
            f"(async for event in node), or join {member.group.name!r} with scope='group'"
        )
