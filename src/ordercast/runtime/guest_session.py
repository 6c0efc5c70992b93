"""Sending to a group without being a member: a guest, from its first message to its last."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ordercast.errors import GroupClosed, UsageError
from ordercast.runtime.first_view import first_view_came
from ordercast.runtime.join_timeouts import not_a_guest
from ordercast.runtime.outbox import Outbox
from ordercast.runtime.sending import Sending
from ordercast.views.groups import GroupEntry

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence


class GuestSession(Sending):
    """One stay as a guest: it sends, and hears only how far its messages have come."""

    def __init__(
        self, presence: Presence, group: GroupEntry, outbox: Outbox, first_message: int
    ) -> None:
        # No member of the group, so `stable` never waits for what this node itself has to read.
        super().__init__(presence, group, outbox, first_message, waits_for_itself=lambda: False)
        self.joins = False  # ends because this node becomes a member

    def ordered(self, frames: int) -> None:
        """Our frames up to this one have their place."""
        self.progress.ordered.reach(frames)

    def admit(self, is_guest: bool) -> None:
        """The view that lets us in is here, or the one that lets us go."""
        future = self.installed if is_guest else self.gone
        if not future.done():
            future.set_result(None)

    def stop(self) -> None:
        """Nothing more is heard of what was sent."""
        self.close(GroupClosed(f"sending to group {self.group.name!r} was stopped"))


class GuestSessions:
    """The groups that a node sends to and is not in."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self.open: dict[str, GuestSession] = {}  # begun, and not being ended
        self._entering: dict[str, asyncio.Task[GuestSession]] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}

    async def begun(self, name: str) -> GuestSession:
        """The guest session in that group, begun if need be."""
        session = self.open.get(name)
        return await asyncio.shield(self._begin(name)) if session is None else session

    def _begin(self, name: str) -> asyncio.Task[GuestSession]:
        """All who send at once wait for the same beginning."""
        task = self._entering.get(name)
        if task is None:
            task = self._entering[name] = asyncio.ensure_future(self._enter(name))
            task.add_done_callback(lambda done: self._entered(name, done))
        return task

    def _entered(self, name: str, task: asyncio.Task[GuestSession]) -> None:
        del self._entering[name]
        if not task.cancelled():
            task.exception()  # nobody need be waiting

    async def _enter(self, name: str) -> GuestSession:
        timeout = self._presence.options.join_timeout
        try:
            async with asyncio.timeout(timeout):
                if name in self._leaving:
                    await asyncio.shield(self._leaving[name])
                return await self._enter_anew(name)
        except TimeoutError:
            raise not_a_guest(self._presence, name, timeout) from None

    async def _enter_anew(self, name: str) -> GuestSession:
        presence = self._presence
        find = partial(presence.cluster_membership.requests.find, name)
        while True:
            session = presence.groups.open_guest_session(await find())
            presence.cluster_membership.ask(session.group, "guest")
            try:
                if await first_view_came(presence, session, find):
                    break
            except BaseException:  # given up, or the next coordinator refuses
                if not session.has_ended:
                    self._begin_to_leave(session)
                raise
            presence.groups.disown(session)
        self.open[name] = session
        return session

    async def leave(self, name: str) -> None:
        """Let what was sent be ordered, then end the visit, if there is one."""
        if name in self._entering:
            await asyncio.wait((self._entering[name],))
        session = self.open.get(name)
        if session is not None:
            self._begin_to_leave(session)
        if name in self._leaving:
            await asyncio.shield(self._leaving[name])

    async def stop(self, name: str) -> None:
        """Do the same; it is an error if this node is no guest of that group."""
        known = {
            session.group.name for session in self._presence.groups.guest_sessions.values()
        } | self._entering.keys()
        if name not in known:
            groups = ", ".join(map(repr, sorted(known))) or "no group"
            raise UsageError(f"this node is no guest of group {name!r}; it is a guest of {groups}")
        await self.leave(name)

    async def end_to_join(self, name: str) -> GuestSession | None:
        """End the visit. Receipts of what was sent stay good."""
        if name in self._entering:
            await asyncio.wait((self._entering[name],))
        session = self.open.get(name)
        if session is None:
            await self.leave(name)
            return None
        session.joins = True
        try:
            await self.leave(name)
        except BaseException:  # given up, perhaps in the moment in which the session ended
            session.joins = False
            if session.gone.done():
                session.stop()
            raise
        return session

    async def leave_all(self) -> None:
        """End all guest_sessions."""
        names = {visit.group.name for visit in self._presence.groups.guest_sessions.values()}
        await asyncio.gather(*map(self.leave, sorted(names | self._entering.keys())))

    def _begin_to_leave(self, session: GuestSession) -> None:
        session.outbox.seal()
        session.close_for_senders()
        name = session.group.name
        self.open.pop(name, None)
        task = self._leaving[name] = asyncio.ensure_future(self._leave(session))
        task.add_done_callback(lambda done: self._left(name, done))

    def _left(self, name: str, task: asyncio.Task[None]) -> None:
        del self._leaving[name]
        if not task.cancelled():
            task.exception()  # nobody need be waiting

    async def _leave(self, session: GuestSession) -> None:
        await self._presence.cluster_membership.leave(session)
        if self._presence.error is None:
            self._presence.groups.close_guest_session(session)
        if not session.joins:
            session.stop()
