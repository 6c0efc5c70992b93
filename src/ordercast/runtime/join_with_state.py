"""A join with state, at the joiner: asks for the state, and sets it when it is here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ordercast.runtime.state import State, bring_together
from ordercast.runtime.state_giving import Giver
from ordercast.runtime.state_overlap import StateOverlap
from ordercast.runtime.state_request import Snapshot
from ordercast.runtime.state_seeking import Memory, Seeking

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership
    from ordercast.runtime.presence import Presence


class JoinWithState:
    """The state transfer of one join, from before the first view until the state is set."""

    def __init__(self, presence: Presence, group: str, state: State) -> None:
        self._presence = presence
        self._state = state
        self._seeking = Seeking(presence, group)

    async def announce(self) -> None:
        """Before the view: have the others take note of this joiner."""
        await self._seeking.announce()

    def attach(self, member: Membership) -> None:
        """The stay that is about to begin. Nothing of it is handed over before the state."""
        self._member = member
        member.state = self._state
        member.giver = Giver(self._presence.states, member, self._state)
        member.barrier.wait(member)
        self._seeking.attach(member)

    async def take(self, memory: Memory | None, *, on_failure: Callable[[], None]) -> None:
        """After the view: get the state and set it, then let the deliveries pass. `memory`: this
        node comes back, and remembers an earlier state.

        It is set now, unless the program has still to handle something of an earlier stay: then
        just before the first view, and `on_failure` is called if that fails.
        """
        member = self._member
        snapshot = await self._seeking.fetch(memory)
        if snapshot is not None:
            if memory is not None or self._has_unread():
                member.before_first_view = lambda: self._set_late(snapshot, on_failure)
            else:
                self._set(snapshot)
            if snapshot.view != member.first_view or snapshot.consumed.messages:
                member.overlap = StateOverlap(snapshot.view, snapshot.consumed)
        assert member.giver is not None
        member.giver.has_state = True
        member.seeking = None
        member.seat.member = member
        member.barrier.admit(member)

    def close(self) -> None:
        """The join is over."""
        self._seeking.close()

    def _has_unread(self) -> bool:
        """Does the program's stream hold something of an earlier stay?"""
        group = self._member.group.name
        return self._member.seat.inbox.has_unread(
            opened=lambda event: event.group == group,
            packed=lambda parcel: parcel[0].group.name == group,
        )

    def _set(self, snapshot: Snapshot) -> None:
        merge = self._member.came_over_by
        if merge is None:
            self._state.set(snapshot.state)
        else:
            bring_together(self._state, merge.sides, snapshot.state)

    def _set_late(self, snapshot: Snapshot, on_failure: Callable[[], None]) -> None:
        try:
            self._set(snapshot)
        except BaseException:
            on_failure()
            raise
