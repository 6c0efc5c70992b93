"""What a member with state does for nodes that join after it.

A joiner tells all nodes, before its view, that it wants the state. From its view on, a member notes
which messages its program takes, for as long as the joiner may still ask: a state that is taken
later than at that view can then say what it holds.

    asked before the view      the state is taken when the program comes for that view, and has so
                               handled everything before it; nothing after it is in the state
    asked later                ... when the program comes for whatever is next
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from ordercast.core.ids import ProcessId
from ordercast.runtime.consumed_messages import ConsumedMessages
from ordercast.runtime.control import StatePromised
from ordercast.runtime.state import State, as_state

if TYPE_CHECKING:
    from ordercast.runtime.inbox import Inbox
    from ordercast.runtime.membership import Membership, Parcel
    from ordercast.runtime.states import States

log = logging.getLogger("ordercast.runtime.state")

Refusal = Literal["none", "alike", "newcomer", "later", "unknown", "failed", "gone"]
"""has no state | came with the same view and wants it too | ... and has none | cannot yet |
took the joiner's view without noting it | its program could not give it | left the group"""

REFUSALS: tuple[Refusal, ...] = get_args(Refusal)


class Giver:
    """Gives the state of one member to newcomers."""

    def __init__(self, states: States, member: Membership, state: State) -> None:
        self.has_state = False  # set here, or begun here
        self.notes: dict[
            ProcessId, tuple[int, ConsumedMessages]
        ] = {}  # joiner: its view, since then
        self._states = states
        self._member = member
        self._state = state
        self._new: dict[int, tuple[ProcessId, ...]] = {}  # newcomers, by views not handed over
        self._promised: dict[ProcessId, int] = {}  # transfers that begin with the joiner's view
        self._asked: dict[ProcessId, int] = {}  # ... that begin when the program comes again
        self._awaits_program = False  # for those
        self._shown = 0  # the last view that the program came for

    # -- the stream -------------------------------------------------------------------------------

    def installed(
        self, view: int, joined: tuple[ProcessId, ...], members: tuple[ProcessId, ...]
    ) -> None:
        """A view is on its way to the program."""
        for pid in [pid for pid in self.notes if pid not in members]:
            self.forget(pid)
        if joined:
            self._new[view] = joined

    def begins_batch(self, view: int) -> bool:
        """Must the program have handled everything before it comes for this view?"""
        return view in self._new

    def came_to(self, view: int) -> None:
        """The program has handled everything before this view."""
        new = self._new.pop(view, ())
        self._shown = view
        for pid in new:
            if self._states.seeks(pid, self._member.group.name):
                self.notes[pid] = (view, ConsumedMessages())
        promised = {pid: self._promised.pop(pid) for pid in new if pid in self._promised}
        if promised:
            self._give(promised, ConsumedMessages())

    def took(self, sender: ProcessId, first: int, count: int) -> None:
        """The program takes these messages."""
        for _, consumed in self.notes.values():
            consumed.add(sender, first, count)

    # -- joiners ----------------------------------------------------------------------------------

    def want(self, pid: ProcessId, transfer: int, view: int) -> None:
        """A joiner asks. `view` is its first one, 0 if it is not in yet."""
        first = self._member.first_view
        if view == 0:
            self._promise(pid, transfer)
        elif first == 0:
            self._refuse(pid, transfer, "later", "it is still joining itself")
        elif view == first and not self._is_ready:
            self._refuse(pid, transfer, "alike", "it joined with the same view")
        elif view > self._shown and view > first:
            self._promise(pid, transfer)
        elif self.notes.get(pid, (0, None))[0] == view:
            self._asked[pid] = transfer
            self._await_program()
        else:
            self._refuse(pid, transfer, "unknown", f"it did not know of this joiner at view {view}")

    def give_up(self, pid: ProcessId, transfer: int) -> None:
        """The joiner does not want it any more."""
        for asked in (self._promised, self._asked):
            if asked.get(pid) == transfer:
                del asked[pid]

    def forget(self, pid: ProcessId) -> None:
        """That joiner has its state, or is gone."""
        for kept in (self.notes, self._promised, self._asked):
            kept.pop(pid, None)

    def close(self) -> None:
        """This node leaves the group, or ends."""
        for asked in (self._promised, self._asked):
            for pid, transfer in asked.items():
                self._refuse(pid, transfer, "gone", "it left the group")
            asked.clear()
        self.notes.clear()

    # -- taking it --------------------------------------------------------------------------------

    @property
    def _is_ready(self) -> bool:
        """Does the program's state belong to its place in the stream?"""
        return self.has_state and self._member.overlap is None

    def _promise(self, pid: ProcessId, transfer: int) -> None:
        self._promised[pid] = transfer
        self._states.tell(pid, StatePromised(transfer))

    def _refuse(self, pid: ProcessId, transfer: int, reason: Refusal, text: str) -> None:
        self._states.refuse(pid, transfer, reason, text)

    def _await_program(self) -> None:
        if not self._awaits_program:
            self._awaits_program = True
            inbox = self._member.seat.inbox
            inbox.when_all_is_handled(partial(self._give_late, inbox))

    def _give_late(self, inbox: Inbox[Parcel]) -> None:
        """The program has handled everything that it took of this stream."""
        self._awaits_program = False
        if self._member.seat.inbox is not inbox:  # the group got a stream of its own
            self._await_program()
            return
        asked, self._asked = self._asked, {}
        for pid, transfer in asked.items():
            consumed = self.notes[pid][1]
            if consumed.overfull:
                self._refuse(pid, transfer, "unknown", "it took too many messages out of turn")
            else:
                self._give({pid: transfer}, consumed)

    def _give(self, transfers: Mapping[ProcessId, int], consumed: ConsumedMessages) -> None:
        """Take the state, now, and send it to these."""
        if not self._is_ready:
            for pid, transfer in transfers.items():
                self._refuse(pid, transfer, "later", "it waits for its own state")
            return
        try:
            state = as_state(self._state.get(), "get")
        except Exception as error:
            log.exception("the state of group %r could not be taken", self._member.group.name)
            for pid, transfer in transfers.items():
                self._refuse(pid, transfer, "failed", f"get() raised {error!r}")
        else:
            for pid, transfer in transfers.items():
                self._states.give(pid, transfer, self._shown, state, consumed)
