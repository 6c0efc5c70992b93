"""State transfers of one node: takes their messages to the right one, and limits their number."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from ordercast.core.ids import ProcessId, check_name
from ordercast.errors import PeerError
from ordercast.runtime.consumed_messages import ConsumedMessages
from ordercast.runtime.control import (
    Control,
    StateAck,
    StateBegin,
    StateChunk,
    StateEnd,
    StateGivenUp,
    StateOffer,
    StatePromised,
    StateRefused,
    StateSettled,
    StateSought,
    StateWanted,
)
from ordercast.runtime.state_giving import Refusal
from ordercast.runtime.state_transfer import Outgoing

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership
    from ordercast.runtime.presence import Presence
    from ordercast.runtime.state_seeking import Seeking

log = logging.getLogger("ordercast.runtime.state")

MAX_GIVING = 16  # states that one node sends at a time; the next joiner is told to ask later
MAX_SOUGHT = 1024  # groups that one node may be joining with state at a time

ABOUT_STATE = (
    StateSought, StateOffer, StateWanted, StatePromised, StateRefused, StateBegin, StateChunk,
    StateEnd, StateAck, StateGivenUp, StateSettled,
)  # fmt: skip


class States:
    """One node's part of the messages about states."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._sought: dict[ProcessId, set[str]] = {}  # groups that others are joining with state
        self._giving: dict[tuple[ProcessId, int], Outgoing] = {}  # by joiner and its number
        self._seeking: dict[str, Seeking] = {}  # this node's joins with state, by group
        self._next_transfer = 0
        self.given = 0  # states sent to the end
        presence.peers.when_unbound(self.forget)

    def tell(self, pid: ProcessId, message: Control) -> None:
        """A message to one node, if it is still there."""
        self._presence.peers.tell(pid, message)

    def stats(self) -> dict[str, int]:
        """The limits beside what they limit."""
        return {
            "giving": len(self._giving),
            "max_giving": MAX_GIVING,
            "giving_bytes": sum(outgoing.size for outgoing in self._giving.values()),
            "max_state": self._presence.options.max_state,
            "given": self.given,
        }

    # -- messages ---------------------------------------------------------------------------------

    def handle(self, pid: ProcessId, message: Control, payload: bytes) -> None:
        """One of `ABOUT_STATE`."""
        if isinstance(message, StateSought):
            self._note(pid, message.group)
        elif isinstance(message, StateSettled):
            self._settled(pid, message.group)
        elif isinstance(message, StateWanted):
            self._wanted(pid, message)
        elif isinstance(message, StateAck):
            if (pid, message.transfer) in self._giving:
                self._giving[pid, message.transfer].acknowledge(message.received)
        elif isinstance(message, StateGivenUp):
            self._given_up(pid, message.transfer)
        elif isinstance(message, StateOffer):
            if message.group in self._seeking:
                self._seeking[message.group].offered(pid, message.place)
        else:
            for seeking in self._seeking.values():
                seeking.handle(pid, message, payload)

    # -- giving -----------------------------------------------------------------------------------

    def seeks(self, pid: ProcessId, group: str) -> bool:
        """Does that node join this group with state, and has none yet?"""
        return group in self._sought.get(pid, ())

    def _note(self, pid: ProcessId, group: str) -> None:
        try:
            check_name("group", group)
        except ValueError as reason:
            raise PeerError(str(reason)) from None
        sought = self._sought.setdefault(pid, set())
        if len(sought) >= MAX_SOUGHT:
            raise PeerError(f"it joins more than {MAX_SOUGHT} groups at a time")
        sought.add(group)
        member = self._member(group)
        offers = member is not None and member.giver is not None and member.view is not None
        place = member.place if member is not None and offers else -1
        self.tell(pid, StateOffer(group, place))

    def _wanted(self, pid: ProcessId, wanted: StateWanted) -> None:
        member = self._member(wanted.group)
        if member is None or member.closed is not None:
            self.refuse(pid, wanted.transfer, "gone", "it is not in the group")
        elif member.giver is not None:
            member.giver.want(pid, wanted.transfer, wanted.view)
        elif wanted.view and member.first_view == wanted.view:
            self.refuse(pid, wanted.transfer, "newcomer", "it joined with the same view, stateless")
        else:
            self.refuse(pid, wanted.transfer, "none", "it joined without state=")

    def _member(self, group: str) -> Membership | None:
        members = self._presence.groups.memberships.values()
        return next((member for member in members if member.group.name == group), None)

    def refuse(self, pid: ProcessId, transfer: int, reason: Refusal, text: str) -> None:
        """That joiner must ask another."""
        self.tell(pid, StateRefused(transfer, reason, text))

    def give(
        self, pid: ProcessId, transfer: int, view: int, state: bytes, consumed: ConsumedMessages
    ) -> None:
        """Send a state, in pieces, beside everything else."""
        limit = self._presence.options.max_state
        if len(state) > limit:
            text = f"its state has {len(state)} bytes, the limit is {limit} (max_state={limit})"
            log.warning("a newcomer gets no state from this node: %s", text)
            self.refuse(pid, transfer, "failed", text)
        elif len(self._giving) >= MAX_GIVING:
            self.refuse(pid, transfer, "later", f"it gives its state to {MAX_GIVING} others now")
        elif (pid, transfer) not in self._giving:
            begin = StateBegin(transfer, view, len(state), consumed.plain())
            ended = partial(self._ended, pid, transfer)
            self._giving[pid, transfer] = Outgoing(self._presence.peers, pid, begin, state, ended)

    def _ended(self, pid: ProcessId, transfer: int) -> None:
        outgoing = self._giving.pop((pid, transfer), None)
        if outgoing is not None:
            outgoing.stop()
            self.given += outgoing.is_complete

    def _given_up(self, pid: ProcessId, transfer: int) -> None:
        self._ended(pid, transfer)
        for member in self._presence.groups.memberships.values():
            if member.giver is not None:
                member.giver.give_up(pid, transfer)

    def _settled(self, pid: ProcessId, group: str) -> None:
        self._sought.get(pid, set()).discard(group)
        member = self._member(group)
        if member is not None and member.giver is not None:
            member.giver.forget(pid)

    def forget(self, pid: ProcessId) -> None:
        """That node is gone."""
        self._sought.pop(pid, None)
        for key in [key for key in self._giving if key[0] == pid]:
            self._ended(*key)
        for member in self._presence.groups.memberships.values():
            if member.giver is not None:
                member.giver.forget(pid)
        for seeking in tuple(self._seeking.values()):
            seeking.lost(pid)

    def stop(self, reason: BaseException) -> None:
        """Nothing is sent or got any more."""
        for seeking in self._seeking.values():
            seeking.fail(reason)
        for key in tuple(self._giving):
            self._ended(*key)

    # -- getting ----------------------------------------------------------------------------------

    def begin(self, seeking: Seeking) -> None:
        """This node is about to join a group with state."""
        self._seeking[seeking.group] = seeking

    def settle(self, seeking: Seeking) -> None:
        """... and has it, or will not have it."""
        del self._seeking[seeking.group]
        self._presence.peers.tell_all(StateSettled(seeking.group))

    def number(self) -> int:
        """The number of the next transfer to this node."""
        self._next_transfer += 1
        return self._next_transfer
