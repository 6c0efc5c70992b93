"""The way back of a node that is out: as its next incarnation, into all groups it was in.

There is one task for each outage. It closes what is left of the old Presence, then makes a new one,
again and again until some node that it knew lets it in. Then it joins all groups again, at the same
time: it asks for them in the order in which they were joined, and a group that cannot be joined yet
delays no other. A refusal does not end the way back, since its reason may pass: the others may not
have excluded the former incarnation yet. It ends when the node is in all its groups, or is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from errno import EADDRINUSE
from itertools import islice

from ordercast.errors import (
    JoinTimeout,
    NodeEnded,
    NotPrimary,
    OrdercastError,
    PeerError,
    StateUnavailable,
    UsageError,
)
from ordercast.runtime.addresses import Address
from ordercast.runtime.closing import FAREWELL, drop_presence
from ordercast.runtime.join_timeouts import no_seed_answered
from ordercast.runtime.joining import Joining, ToRejoin
from ordercast.runtime.lifetime import Outage
from ordercast.runtime.presence import Presence
from ordercast.runtime.reasons import why_unreachable

log = logging.getLogger("ordercast.runtime.reentry")

FIRST_PAUSE = 0.1  # seconds between two rounds; each is twice as long as the one before ...
LONGEST_PAUSE = 1.0  # ... up to this
REACH = 1.0  # seconds that an address gets to answer
ANSWER = 3.0  # seconds that the one that answered gets to let this node in
ASKED_AT_ONCE = 8  # addresses in one round; the next round asks the next ones
FAITHFUL_ROUNDS = 3  # rounds in which only the old port will do, although the system chose it
MAY_PASS = (JoinTimeout, StateUnavailable, NotPrimary)
MAX_UNREAD_OUTAGES = 16  # in one stream; then the node stays out until the application reads on


class Reentry:
    """One outage of a node, from the end of a Presence to the last group that was joined again."""

    def __init__(
        self,
        old: Presence,
        to_rejoin: ToRejoin,
        *,
        new_presence: Callable[[], Presence],
        adopt: Callable[[Presence, Joining], None],
        addresses: Iterable[str],
        bind: Address,
        any_port: bool,
    ) -> None:
        """`adopt` is called when the new Presence is in the cluster, before it joins a group.

        `any_port`: if the port in `bind` is taken, another one will do.
        """
        self._old = old
        self._to_rejoin = to_rejoin
        self._new_presence = new_presence
        self._adopt = adopt
        self._addresses = tuple(addresses)
        self._bind = bind
        self._any_port = any_port
        self._lifetime = old.lifetime
        self._in_vain: set[str] = set()  # addresses that answered, and did not let it in

    async def run(self, before: asyncio.Task[None] | None) -> None:
        """Come back. `before` is the way back that this outage cut short.

        A bug in Ordercast ends the node: its streams raise the error.
        """
        if before is not None:
            before.cancel()
            await asyncio.wait((before,))
        try:
            await self._come_back()
        except Exception as error:
            log.error("%s cannot come back", self._old.me.identity, exc_info=error)
            self._lifetime.end(error)

    async def _come_back(self) -> None:
        log.warning("%s is out: %s", self._old.me.identity, self._old.error)
        await self._old.peers.closed(FAREWELL)
        presence = await self._get_in()
        joining = Joining(presence, to_rejoin=self._to_rejoin)
        self._adopt(presence, joining)
        if await self._take_seats(joining):
            self._lifetime.come_back(Outage.ENDED)
            log.warning("%s is back as %s", self._old.me.identity, presence.me.identity)

    # -- into the cluster -------------------------------------------------------------------------

    async def _get_in(self) -> Presence:
        number, pause = 0, FIRST_PAUSE
        while True:
            try:
                return await self._round(number)
            except (OSError, OrdercastError) as reason:
                self._lifetime.cannot_come_back(f"it cannot come back yet: {reason}")
                log.debug("%s is still out: %s", self._old.me.identity, reason)
            except Exception as error:  # a bug in Ordercast: another machine may do
                if not self._lifetime.may_outlive_failure():
                    raise
                self._lifetime.cannot_come_back(f"its new state machine failed: {error}")
                log.error(
                    "%s could not come back, and tries again: %s", self._old.me.identity, error,
                    exc_info=error,
                )  # fmt: skip
            await asyncio.sleep(pause)
            number, pause = number + 1, min(2 * pause, LONGEST_PAUSE)

    async def _round(self, number: int) -> Presence:
        """Ask some of the addresses to let this node in."""
        self._check_that_somebody_reads()
        presence = self._new_presence()
        try:
            await self._listen(presence, number)
            seeds = await self._answering(presence, number)
            self._in_vain.update(seeds)
            await presence.follow(seeds, ask_seconds=ANSWER)
            if presence.error is not None:
                raise presence.error
            presence.start_recording()
        except BaseException:
            self._lifetime.come_back(Outage.CUT_OFF)  # it may have been; that ends with it
            await drop_presence(presence, "this node could not come back")
            raise
        return presence

    def _check_that_somebody_reads(self) -> None:
        unread = self._lifetime.unread_outages
        if unread >= MAX_UNREAD_OUTAGES:
            raise UsageError(
                f"{unread} outages in a stream of this node were never read, and it comes back "
                f"only while they are fewer than {MAX_UNREAD_OUTAGES}: read the stream"
            )

    async def _listen(self, presence: Presence, number: int) -> None:
        try:
            await presence.peers.listen(self._bind)
        except OSError as error:
            taken = error.errno == EADDRINUSE and number >= FAITHFUL_ROUNDS
            if not (self._any_port and taken):
                raise
            await presence.peers.listen((self._bind[0], 0))

    async def _answering(self, presence: Presence, number: int) -> tuple[str, ...]:
        """The first to answer of this round's addresses; none, if discovery is to find others.

        One that answered before, and that in vain, is the last choice: it must not be asked for
        ever because it is the quickest.
        """
        first = number * ASKED_AT_ONCE % max(1, len(self._addresses))
        turned = self._addresses[first:] + self._addresses[:first]
        dials = {
            asyncio.ensure_future(_ask(presence, address)): address
            for address in islice(turned, ASKED_AT_ONCE)
        }
        reasons: dict[str, str] = {}
        again: list[str] = []
        try:
            for dial in asyncio.as_completed(dials):
                address, reason = await dial
                if reason is not None:
                    reasons[address] = reason
                elif address in self._in_vain:
                    again.append(address)
                else:
                    return (address,)
        finally:
            for task in dials:
                task.cancel()
        if again:
            self._in_vain.difference_update(again)
            return (again[0],)
        if presence.options.discover is not None:
            return ()
        raise no_seed_answered(presence, reasons, REACH)

    # -- into the groups --------------------------------------------------------------------------

    async def _take_seats(self, joining: Joining) -> bool:
        """False if the new Presence ended in the meantime: its outage has a way back of its own.

        One that is cut off has not ended. It goes on here, as soon as it hears a majority again.
        """
        seats = [self._take_seat(joining, name) for name in self._to_rejoin.seats]
        guest_sessions = [
            self._resume_guest_session(joining, name) for name in self._to_rejoin.guest_of
        ]
        taking = [asyncio.ensure_future(one) for one in (*seats, *guest_sessions)]
        try:
            for taken in asyncio.as_completed(taking):
                await taken
        except NodeEnded:
            return False
        finally:
            for task in taking:
                task.cancel()
            await asyncio.gather(*taking, return_exceptions=True)
        return True

    async def _take_seat(self, joining: Joining, name: str) -> None:
        pause = FIRST_PAUSE
        while (seat := self._to_rejoin.seats.get(name)) is not None:
            try:
                return await joining.rejoin(seat)
            except MAY_PASS as reason:
                self._lifetime.cannot_join_again(name, reason)
            except NodeEnded:
                raise
            except OrdercastError as reason:
                if self._to_rejoin.seats.get(name) is seat:  # else its program has left the group
                    log.error("group %r cannot be joined again: %s", name, reason)
                    joining.lose(seat, reason)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _resume_guest_session(self, joining: Joining, name: str) -> None:
        try:
            await joining.sender(name)  # a member, if its program has joined the group meanwhile
        except OrdercastError as reason:  # the next `send_to` will tell
            if isinstance(reason, NodeEnded) and not isinstance(reason, NotPrimary):
                raise
            log.debug("not a guest of group %r again: %s", name, reason)


async def _ask(presence: Presence, address: str) -> tuple[str, str | None]:
    return address, await why_no_seed(presence, address)


async def why_no_seed(presence: Presence, address: str) -> str | None:
    """Why no node at this address can let this one in; None: one may."""
    try:
        conn = await presence.peers.dial(address, REACH, as_stranger=True)
    except (OSError, PeerError) as reason:
        return why_unreachable(reason)
    conn.close("it answers")
    is_in = conn.hello is not None and conn.hello.incarnation
    return None if is_in else "it is not in the cluster itself"
