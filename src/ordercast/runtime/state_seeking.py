"""How a joiner gets the state: which member it asks, and what it does when that one fails.

    announce   before the view: all nodes note what they take from this node's view on. The first
               member that can give the state promises it, so that it is taken exactly at that view
    fetch      after the view: the state comes, or the next member of the view is asked for a later
               one. That says which messages after the view it holds: this node will get them too,
               and passes them by

A later state is believed only when all it holds has come here too. Until then this node must not
act on it: what it sends might overtake what it depends on. And if its giver dies, a message that
nobody else has is dropped with the view: then the next one is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ordercast.core.ids import ProcessId
from ordercast.core.output import Delivery
from ordercast.errors import FrameError, StateUnavailable
from ordercast.runtime.consumed_messages import ConsumedMessages
from ordercast.runtime.control import Control, StateGivenUp, StateSought, StateWanted
from ordercast.runtime.state_request import Request, Snapshot
from ordercast.views.target import REMEMBERING
from ordercast.wire.messages import unpack_messages

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership
    from ordercast.runtime.presence import Presence

ANSWER_S = 1.0  # seconds to wait for answers before the view; then the join goes on without
ROUND_S = 0.05  # seconds between two rounds over the members

MAY_CHANGE = ("alike", "later")  # refusals after which it pays to ask again


class Memory(NamedTuple):
    """What a node that comes back remembers of the group."""

    view: int  # the last one that its program has seen, and has the state of
    asks_since: float  # to be in again, by the clock of the loop


class Seeking:
    """One join with state, from before the view until the state is here."""

    def __init__(self, presence: Presence, group: str) -> None:
        self.group = group
        self._presence = presence
        self._news = asyncio.Event()  # something of the below changed
        self._silent: set[ProcessId] = set()  # nodes that were told, and have not answered
        self._offers: dict[ProcessId, int] = {}  # their places in the view
        self._request: Request | None = None  # the one under way
        self._refusals: dict[ProcessId, tuple[str, str]] = {}  # of this round
        self._member: Membership | None = None
        self._came = ConsumedMessages()  # since this node's first view
        self._frames = 0  # ... in so many frames
        self._view = 0  # the newest one installed here
        self._moved = 0.0  # when a piece came last
        self._error: BaseException | None = None  # this node ends
        presence.states.begin(self)

    # -- before the view --------------------------------------------------------------------------

    async def announce(self) -> None:
        """Have all nodes note what they take, and the first member that can promise the state."""
        peers = self._presence.peers
        self._silent = set(peers.bound)
        peers.tell_all(StateSought(self.group))
        await self._until(lambda: not self._silent, ANSWER_S, lambda: len(self._silent))
        for _, pid in sorted((place, pid) for pid, place in self._offers.items() if place >= 0):
            if pid not in self._presence.engine.stack.pids:
                continue  # in no view yet, as far as is known here: it has no say
            request = self._ask(pid, 0)
            if await self._is_promised(request):
                return
            self._give_up()

    async def _is_promised(self, request: Request) -> bool:
        answered = await self._until(
            lambda: request.promised or request.is_over, ANSWER_S, lambda: request.heard
        )
        return answered and request.promised

    def attach(self, member: Membership) -> None:
        """The stay that is about to begin."""
        self._member = member
        member.seeking = self

    # -- after the view ---------------------------------------------------------------------------

    async def fetch(self, memory: Memory | None) -> Snapshot | None:
        """The state; None where this node begins from its own: as the first member of the group, or
        because it was in it before, and nobody else has a state."""
        loop = asyncio.get_running_loop()
        self._moved = loop.time()
        while True:
            for pid in self._candidates():
                snapshot = await self._from(pid)
                if snapshot is not None:
                    return snapshot
            if self._begins_here(memory):
                return None
            reasons = {reason for reason, _ in self._refusals.values()}
            late = loop.time() > self._moved + self._presence.options.join_timeout
            if late or not reasons.intersection(MAY_CHANGE):
                raise StateUnavailable(self.group, self._told())
            await asyncio.sleep(ROUND_S)

    def _others(self) -> tuple[ProcessId, ...]:
        assert self._member is not None
        return tuple(pid for pid in self._member.first_members if pid != self._presence.me.pid)

    def _candidates(self) -> Iterator[ProcessId]:
        """The members of the first view: who promised it, then the others in their order."""
        promised = None if self._request is None else self._request.pid
        yield from sorted(self._others(), key=lambda pid: pid != promised)

    def _begins_here(self, memory: Memory | None) -> bool:
        """Is this node the first that has a state, of those that joined with the same view?

        They are all members; or the others joined without a state, and this node comes back.
        """
        assert self._member is not None
        reasons = {pid: self._refusals[pid][0] for pid in self._others()}
        if not set(reasons.values()) <= {"alike", "newcomer", "none"}:
            return False
        if "none" in reasons.values() and (memory is None or self._awaits_newer(memory)):
            return False
        without = ("newcomer", "none")
        with_state = [p for p in self._member.first_members if reasons.get(p) not in without]
        return with_state[0] == self._presence.me.pid

    def _awaits_newer(self, memory: Memory) -> bool:
        """Is it worth waiting for a member that is absent? As long as an empty group would wait."""
        assert self._member is not None
        presence, now = self._presence, asyncio.get_running_loop().time()
        is_late = now - memory.asks_since > REMEMBERING * presence.options.refound_ms / 1000
        newer = presence.engine.stack.absent_since(self._member.group.gid, memory.view)
        return bool(newer) and not is_late

    def _told(self) -> dict[str, str]:
        identities = self._presence.directory.identities
        return {identities[pid]: text for pid, (_, text) in self._refusals.items()}

    async def _from(self, pid: ProcessId) -> Snapshot | None:
        """The state that this member gives; None, and the reason is kept, if it gives none."""
        assert self._member is not None
        self._refusals[pid] = ("unreachable", "it is gone")
        if pid not in self._presence.peers.bound:
            self._request = None
            return None
        request = self._request
        if request is None or request.pid != pid:
            request = self._ask(pid, self._member.first_view)
        patience = self._presence.options.state_timeout
        if not await self._until(lambda: request.is_over, patience, lambda: request.heard):
            request.refusal = ("slow", f"nothing of its state came for {patience:g} s")
        if request.is_complete:
            snapshot = await request.snapshot()
            await self._until(lambda: self._decided(snapshot), patience, lambda: self._frames)
            if self._has(snapshot):
                return snapshot
            request.refusal = ("lost", "its state holds messages that did not come here")
        assert request.refusal is not None
        self._refusals[pid] = request.refusal
        self._give_up()
        return None

    def _has(self, snapshot: Snapshot) -> bool:
        """Has all come here that the state holds?"""
        return self._view >= snapshot.view and self._came.covers(snapshot.consumed)

    def _decided(self, snapshot: Snapshot) -> bool:
        """... or will it never come: all that belongs to that view has come by the next."""
        return self._has(snapshot) or self._view > snapshot.view

    # -- asking -----------------------------------------------------------------------------------

    def _ask(self, pid: ProcessId, view: int) -> Request:
        presence = self._presence
        request = Request(presence.peers, pid, presence.states.number(), presence.options.max_state)
        self._request = request
        presence.peers.tell(pid, StateWanted(request.transfer, self.group, view))
        return request

    def _give_up(self) -> None:
        """The next one is asked; what may still come of this one is not wanted."""
        request, self._request = self._request, None
        if request is not None:
            self._presence.peers.tell(request.pid, StateGivenUp(request.transfer))

    async def _until(
        self, is_so: Callable[[], bool], patience: float, moving: Callable[[], int]
    ) -> bool:
        """Wait for that. False if for `patience` seconds that number did not change either."""
        loop = asyncio.get_running_loop()
        before, deadline = moving(), loop.time() + patience
        while True:
            if self._error is not None:
                raise self._error.with_traceback(None)
            if is_so():
                return True
            if moving() != before:
                before, deadline = moving(), loop.time() + patience
            self._news.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                return False

    # -- what comes -------------------------------------------------------------------------------

    def offered(self, pid: ProcessId, place: int) -> None:
        """That node has taken note."""
        if pid in self._silent:
            self._silent.discard(pid)
            self._offers[pid] = place
            self._news.set()

    def handle(self, pid: ProcessId, message: Control, payload: bytes) -> None:
        """An answer, or a piece. What was given up before may still come: it is dropped."""
        request = self._request
        number = getattr(message, "transfer", None)
        if request is None or (pid, number) != (request.pid, request.transfer) or request.is_over:
            return
        request.handle(message, payload)
        self._moved = max(self._moved, request.moved)
        self._news.set()

    def delivered(self, delivery: Delivery) -> None:
        """A frame came, and waits behind the state."""
        try:
            first, bodies = unpack_messages(delivery[4])
        except FrameError:
            return  # its sender is told when it is opened
        self._frames += 1
        self._came.add(delivery[1], first, len(bodies))
        self._news.set()

    def installed(self, view: int) -> None:
        """A view came."""
        self._view = view
        self._news.set()

    def lost(self, pid: ProcessId) -> None:
        """That node is gone."""
        self._silent.discard(pid)
        request = self._request
        if request is not None and request.pid == pid and not request.is_over:
            request.refusal = ("unreachable", "it is gone")
        self._news.set()

    def fail(self, error: BaseException) -> None:
        """This node ends."""
        self._error = error
        self._news.set()

    def close(self) -> None:
        """The transfer is over: no node need note anything for this one any more."""
        if self._request is not None and not self._request.is_over:
            self._give_up()
        if self._member is not None:
            self._member.seeking = None
        self._presence.states.settle(self)
