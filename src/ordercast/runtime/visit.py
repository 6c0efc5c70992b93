"""Sending to a group without being a member: a guest, from its first message to its last."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ordercast.errors import GroupClosed, UsageError
from ordercast.runtime.join_timeouts import not_a_guest
from ordercast.runtime.let_in import is_let_in
from ordercast.runtime.outbox import Outbox
from ordercast.runtime.sending import Sending
from ordercast.views.groups import GroupEntry

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence


class Visit(Sending):
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


class Visits:
    """The groups that a node sends to and is not in."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self.open: dict[str, Visit] = {}  # begun, and not being ended
        self._entering: dict[str, asyncio.Task[Visit]] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}

    async def begun(self, name: str) -> Visit:
        """The visit to that group, begun if need be."""
        visit = self.open.get(name)
        return await asyncio.shield(self._begin(name)) if visit is None else visit

    def _begin(self, name: str) -> asyncio.Task[Visit]:
        """All who send at once wait for the same beginning."""
        task = self._entering.get(name)
        if task is None:
            task = self._entering[name] = asyncio.ensure_future(self._enter(name))
            task.add_done_callback(lambda done: self._entered(name, done))
        return task

    def _entered(self, name: str, task: asyncio.Task[Visit]) -> None:
        del self._entering[name]
        if not task.cancelled():
            task.exception()  # nobody need be waiting

    async def _enter(self, name: str) -> Visit:
        timeout = self._presence.options.join_timeout
        try:
            async with asyncio.timeout(timeout):
                if name in self._leaving:
                    await asyncio.shield(self._leaving[name])
                return await self._enter_anew(name)
        except TimeoutError:
            raise not_a_guest(self._presence, name, timeout) from None

    async def _enter_anew(self, name: str) -> Visit:
        presence = self._presence
        find = partial(presence.nodeship.requests.visit, name)
        while True:
            visit = presence.groups.open_visit(await find())
            presence.nodeship.ask(visit.group, "guest")
            try:
                if await is_let_in(presence, visit, find):
                    break
            except BaseException:  # given up, or the next coordinator refuses
                if not visit.has_ended:
                    self._begin_to_leave(visit)
                raise
            presence.groups.disown(visit)
        self.open[name] = visit
        return visit

    async def leave(self, name: str) -> None:
        """Let what was sent be ordered, then end the visit, if there is one."""
        if name in self._entering:
            await asyncio.wait((self._entering[name],))
        visit = self.open.get(name)
        if visit is not None:
            self._begin_to_leave(visit)
        if name in self._leaving:
            await asyncio.shield(self._leaving[name])

    async def stop(self, name: str) -> None:
        """Do the same; it is an error if this node is no guest of that group."""
        known = {
            visit.group.name for visit in self._presence.groups.visits.values()
        } | self._entering.keys()
        if name not in known:
            groups = ", ".join(map(repr, sorted(known))) or "no group"
            raise UsageError(f"this node is no guest of group {name!r}; it is a guest of {groups}")
        await self.leave(name)

    async def end_to_join(self, name: str) -> Visit | None:
        """End the visit. Receipts of what was sent stay good."""
        if name in self._entering:
            await asyncio.wait((self._entering[name],))
        visit = self.open.get(name)
        if visit is None:
            await self.leave(name)
            return None
        visit.joins = True
        try:
            await self.leave(name)
        except BaseException:  # given up, perhaps in the moment in which the visit ended
            visit.joins = False
            if visit.gone.done():
                visit.stop()
            raise
        return visit

    async def leave_all(self) -> None:
        """End all visits."""
        names = {visit.group.name for visit in self._presence.groups.visits.values()}
        await asyncio.gather(*map(self.leave, sorted(names | self._entering.keys())))

    def _begin_to_leave(self, visit: Visit) -> None:
        visit.outbox.seal()
        visit.close_for_senders()
        name = visit.group.name
        self.open.pop(name, None)
        task = self._leaving[name] = asyncio.ensure_future(self._leave(visit))
        task.add_done_callback(lambda done: self._left(name, done))

    def _left(self, name: str, task: asyncio.Task[None]) -> None:
        del self._leaving[name]
        if not task.cancelled():
            task.exception()  # nobody need be waiting

    async def _leave(self, visit: Visit) -> None:
        await self._presence.nodeship.leave(visit)
        if self._presence.error is None:
            self._presence.groups.close_visit(visit)
        if not visit.joins:
            visit.stop()
