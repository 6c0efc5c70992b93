"""Joining and leaving a group: the two ends of a stay in it."""

from __future__ import annotations

import asyncio

from ordercast.core.declaration import Declaration
from ordercast.core.ids import check_name
from ordercast.errors import AlreadyJoined, GroupClosed, JoinTimeout, ScopeError, UsageError
from ordercast.protocols.registry import PROTOCOLS, choose
from ordercast.runtime.control import GroupEntry
from ordercast.runtime.membership import Membership
from ordercast.runtime.sending import Sending
from ordercast.runtime.site import Site
from ordercast.runtime.visit import Visits

SCOPES = ("group", "domain")


class Stays:
    """The groups that a node is in, or is about to be in."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.visits = Visits(site)
        self._entering: dict[str, str] = {}  # the order of each group that is being joined
        self._leaving: dict[Membership, asyncio.Task[None]] = {}

    async def join(
        self, name: str, order: str | None, protocol: str | None, scope: str | None
    ) -> Membership:
        """Be a member: returns when the first view is installed."""
        check_name("group", name)
        declaration = choose(order, protocol).declaration
        self._check_new(name)
        self._check_scope(name, declaration, scope)
        self._entering[name] = declaration.order
        try:
            await self._end_visit(name)
            entry = await self._site.role.enter(name, declaration.order, protocol)
            if entry.protocol not in PROTOCOLS:
                raise UsageError(
                    f"group {name!r} uses protocol {entry.protocol!r}, which is not built into "
                    "this node: it runs another version than the leader"
                )
            return await self._begin(entry, scope)
        finally:
            del self._entering[name]

    async def _end_visit(self, name: str) -> None:
        """What this node sent as a guest comes before what it will send as a member."""
        timeout = self._site.options.join_timeout
        try:
            async with asyncio.timeout(timeout):
                await self.visits.leave(name)
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

    async def _begin(self, entry: GroupEntry, scope: str | None) -> Membership:
        site = self._site
        member = site.open_membership(entry, scope)
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

    def _check_scope(self, name: str, declared: Declaration, asked: str | None) -> None:
        order, protocol = declared.order, declared.name
        if asked is not None and asked not in SCOPES:
            raise ValueError(f"scope={asked!r} is unknown; use 'group' or 'domain'")
        if declared.scope == "domain" or asked == "group":
            return
        if asked == "domain":
            raise ScopeError(
                f"no protocol is built that promises order {order!r} across groups; "
                f"join {name!r} with scope='group'"
            )
        joined = {m.group.name: m.group.order for m in self._site.memberships.values()}
        for other, promised in (joined | self._entering).items():
            if promised == order:
                raise ScopeError(
                    f"this node is in group {other!r} with order {order!r}, or about to be, and "
                    f"protocol {protocol!r} keeps that order inside one group only: "
                    f"between {other!r} and {name!r} nothing would be promised. "
                    f"If that is enough, join {name!r} with scope='group'"
                )

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
            f"this node is also in {names} with order {member.group.order!r}: two loops could "
            "take messages in another order than they were delivered in. Read the node's stream "
            f"(async for event in node), or join {member.group.name!r} with scope='group'"
        )
