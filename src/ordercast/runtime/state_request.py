"""A request to one member for its state: it is refused, or the state comes in pieces."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.runtime.consumed_messages import ConsumedMessages
from ordercast.runtime.control import (
    Control,
    StateAck,
    StateBegin,
    StateChunk,
    StateEnd,
    StatePromised,
    StateRefused,
)
from ordercast.runtime.state_giving import REFUSALS
from ordercast.runtime.state_transfer import Incoming

if TYPE_CHECKING:
    from ordercast.runtime.peers import Peers


class Snapshot(NamedTuple):
    """A state, and its place."""

    state: bytes
    view: int  # the last one that is in it, or the joiner's first one
    consumed: ConsumedMessages  # messages since the joiner's first view that are in it


class Request:
    """A request to one member, and what has come of its answer."""

    def __init__(self, peers: Peers, pid: ProcessId, transfer: int, max_state: int) -> None:
        self.pid = pid
        self.transfer = transfer
        self.heard = 0  # messages about it
        self.promised = False
        self.refusal: tuple[str, str] | None = None  # (reason, in words)
        self.is_complete = False  # all of the state is here
        self.moved = 0.0  # when a piece came last
        self._peers = peers
        self._max_state = max_state
        self._begin: StateBegin | None = None
        self._incoming: Incoming | None = None

    @property
    def is_over(self) -> bool:
        """Nothing more will come of it."""
        return self.is_complete or self.refusal is not None

    async def snapshot(self) -> Snapshot:
        """The state that came, with its place in the stream."""
        assert self.is_complete and self._begin is not None and self._incoming is not None
        state = await self._incoming.whole()
        return Snapshot(state, self._begin.view, ConsumedMessages(self._begin.taken))

    def handle(self, message: Control, payload: bytes) -> None:
        """An answer, or a piece."""
        self.heard += 1
        if isinstance(message, StatePromised):
            self.promised = True
        elif isinstance(message, StateRefused):
            if message.reason not in REFUSALS:
                raise PeerError(f"it refuses a state for no known reason: {message.reason!r}")
            self.refusal = (message.reason, message.text)
        elif isinstance(message, StateBegin):
            self._begins(message)
        elif self._incoming is None:
            raise PeerError(f"{type(message).__name__} before the beginning of a state")
        elif isinstance(message, StateChunk):
            self._incoming.take(message.offset, payload)
            self.moved = asyncio.get_running_loop().time()
            self._peers.tell(self.pid, StateAck(self.transfer, self._incoming.received))
        elif isinstance(message, StateEnd):
            self._incoming.finish(message.digest)
            self.is_complete = True

    def _begins(self, begin: StateBegin) -> None:
        if self._incoming is not None or begin.size < 0:
            raise PeerError(f"a state of {begin.size} bytes begins out of turn")
        if begin.size > self._max_state:
            text = f"its state has {begin.size} bytes, the limit here is {self._max_state}"
            self.refusal = ("failed", f"{text} (max_state={self._max_state})")
        self._begin = begin
        self._incoming = Incoming(begin.size)
