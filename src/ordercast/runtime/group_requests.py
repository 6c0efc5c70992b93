"""The questions of this node to the coordinator about groups, and its own answers as coordinator.

A question is asked again when another node becomes the coordinator: the answer of the former one
does not count any more, because its successor may give the same number to another group.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ordercast.core.durability import Durability
from ordercast.core.ids import ProcessId
from ordercast.core.protocol import DeliveryLevel
from ordercast.errors import OrderMismatch, UsageError
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.control import Control, Enter, Entered, NotEntered, Visit
from ordercast.runtime.group_names import GroupNames, wanted
from ordercast.runtime.join_timeouts import no_answer_about
from ordercast.views.groups import GroupEntry, SlowPolicy

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence


class PendingRequest:
    """One question, until it is answered."""

    def __init__(self, question: Enter | Visit, want: str) -> None:
        self.question = question
        self.want = want  # in words
        self.answer: asyncio.Future[GroupEntry] = asyncio.get_running_loop().create_future()


class GroupRequests:
    """The questions of one node, and its answers while it coordinates."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self.names = GroupNames(presence)
        self._pending: dict[int, PendingRequest] = {}  # by their number
        self._next = 0

    async def enter(
        self,
        name: str,
        order: str,
        protocol: str | None,
        durability: Durability = None,
        level: DeliveryLevel | None = None,
        slow: SlowPolicy | None = None,
    ) -> GroupEntry:
        """The group of that name, made if need be."""
        question = Enter(self._number(), name, order, protocol, durability, level, slow)
        return await self._ask(PendingRequest(question, wanted(question)))

    async def find(self, name: str) -> GroupEntry:
        """The group of that name, to send to."""
        return await self._ask(PendingRequest(Visit(self._number(), name), "any order"))

    def _number(self) -> int:
        self._next += 1
        return self._next

    async def _ask(self, pending: PendingRequest) -> GroupEntry:
        presence, request = self._presence, pending.question.request
        self._pending[request] = pending
        timeout = presence.options.join_timeout
        self._put(pending)
        try:
            async with asyncio.timeout(timeout):
                return await pending.answer
        except TimeoutError:
            raise no_answer_about(presence, pending.question.group, timeout) from None
        finally:
            del self._pending[request]

    def _put(self, pending: PendingRequest) -> None:
        stack = self._presence.engine.stack
        if stack.coordinates:
            self._take(pending, self.names.answer(pending.question))
        elif stack.coordinator is not None:
            self._presence.peers.tell(stack.coordinator, pending.question)

    def put_again(self) -> None:
        """A node view is in force: who coordinates may be another."""
        for pending in self._pending.values():
            if not pending.answer.done():
                self._put(pending)

    def handle(self, pid: ProcessId, message: Control) -> None:
        """A question of another node, or an answer."""
        stack = self._presence.engine.stack
        if isinstance(message, Enter | Visit):
            if stack.coordinates:
                self._presence.peers.tell(pid, self.names.answer(message))
        else:
            assert isinstance(message, Entered | NotEntered), "the table lets nothing else through"
            pending = self._pending.get(message.request)
            if pending is not None:
                self._take(pending, message)

    def _take(self, pending: PendingRequest, answer: Control) -> None:
        if pending.answer.done():
            return
        if isinstance(answer, Entered):
            self._entered(pending, answer.group)
            return
        assert isinstance(answer, NotEntered)
        mismatch = OrderMismatch(pending.question.group, answer.have, pending.want)
        pending.answer.set_exception(UsageError(answer.text) if answer.text else mismatch)

    def _entered(self, pending: PendingRequest, group: GroupEntry) -> None:
        known = PROTOCOLS.get(group.protocol)
        if known is not None and known.header_version == group.header_version:
            pending.answer.set_result(group)
            return
        here = "no such protocol" if known is None else f"version {known.header_version}"
        pending.answer.set_exception(
            UsageError(
                f"group {group.name!r} speaks {group.protocol!r}, headers version "
                f"{group.header_version}; this node has {here}: run the same release on all nodes"
            )
        )

    def stop(self, reason: BaseException) -> None:
        """No answer will come any more."""
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(reason)
