"""How a node finds its cluster: ask the seeds until one of them lets it in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ordercast.errors import ConfigError, NameTaken, PeerError, UsageError
from ordercast.runtime.control import Admitted, Apply, Control, Goodbye, Redirect, Refused, encode
from ordercast.runtime.join_timeouts import (
    no_seed_answered,
    no_seed_let_it_in,
    not_primary,
    seeds_wait_too,
)
from ordercast.runtime.plausible import check_redirect
from ordercast.runtime.reasons import why_unreachable
from ordercast.transport.tcp import Connection

if TYPE_CHECKING:
    from ordercast.errors import JoinTimeout
    from ordercast.runtime.presence import Presence

PAUSE = 0.05  # seconds between two rounds over the seeds
ATTEMPT = 3.0  # seconds that one seed gets in the first round; twice as many in each that follows

REFUSALS: dict[str, type[UsageError]] = {"config": ConfigError, "name": NameTaken}
TRANSIENT = ("joining", "changing", "not_primary")  # reasons of a refusal that may pass


class NotYet(PeerError):
    """A seed answered, and nobody lets this node in for now."""

    def __init__(
        self, text: str, *, address: str, reason: str = "", coordinator: str | None = None
    ) -> None:
        super().__init__(text)
        self.address = address  # of the node that answered
        self.reason = reason  # of its refusal; empty: it did not refuse
        self.coordinator = coordinator  # the address to which it sent this node


class Admission:
    """The role of a node until a seed has let it in: it asks the seeds."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._answers: dict[Connection, asyncio.Future[Control]] = {}

    async def ask(self, seeds: tuple[str, ...], timeout: float) -> Admitted:
        """Ask all seeds, again and again, until one lets us in; or the reasons why none did.

        A seed may refuse this node for good, and be wrong: the others are asked all the same. The
        refusal stands if none of them says that it may pass.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        reasons: dict[str, Exception] = {}
        patience = ATTEMPT
        while True:
            for seed in seeds:
                left = deadline - loop.time()
                try:
                    return await self._ask_one(seed, min(patience, max(left, 0.05)))
                except (OSError, PeerError, UsageError) as reason:
                    reasons[seed] = reason
            is_late = loop.time() + PAUSE >= deadline
            refusals = [reason for reason in reasons.values() if isinstance(reason, UsageError)]
            may_pass = any(isinstance(reason, NotYet) for reason in reasons.values())
            if refusals and (is_late or not may_pass):
                raise refusals[0]
            if is_late:
                raise self._timeout(reasons, timeout)
            await asyncio.sleep(PAUSE)
            patience *= 2  # a seed that many call at a time answers in turn, and late

    def _timeout(self, reasons: dict[str, Exception], seconds: float) -> JoinTimeout:
        """The error: no seed answered, or why those that did have not let this node in."""
        told = {
            seed: why_unreachable(reason).removeprefix(f"{seed}: ")
            for seed, reason in reasons.items()
        }
        answered = [reason for reason in reasons.values() if isinstance(reason, NotYet)]
        if not answered:
            return no_seed_answered(self._presence, told, seconds)
        cut_off = [reason.address for reason in answered if reason.reason == "not_primary"]
        if cut_off:
            return not_primary(self._presence, told, seconds, cut_off=cut_off[0])
        if all(reason.reason == "joining" for reason in answered):
            return seeds_wait_too(self._presence, told, seconds)
        coordinators = [reason.coordinator for reason in answered if reason.coordinator]
        return no_seed_let_it_in(self._presence, told, seconds, coordinators=coordinators)

    async def _ask_one(self, seed: str, timeout: float) -> Admitted:
        answer, address = await self._apply(seed, timeout), seed
        if isinstance(answer, Redirect):
            address = answer.leader
            answer = await self._apply_to_coordinator(address, timeout)
        if isinstance(answer, Refused):
            if answer.reason in TRANSIENT:  # it may be in soon, as may another seed
                raise NotYet(answer.text, address=address, reason=answer.reason)
            raise REFUSALS.get(answer.reason, UsageError)(answer.text)
        assert isinstance(answer, Admitted)
        return answer

    async def _apply_to_coordinator(self, address: str, timeout: float) -> Control:
        """The seed is in the cluster, and said who lets nodes in."""
        try:
            answer = await self._apply(address, timeout)
        except (OSError, PeerError) as reason:
            why = why_unreachable(reason).removeprefix(f"{address}: ")
            text = f"it sent this node to its coordinator at {address}, and from there: {why}"
            raise NotYet(text, address=address, coordinator=address) from reason
        if isinstance(answer, Redirect):
            text = f"it sent this node to {address}, which does not coordinate any more"
            raise NotYet(text, address=address, coordinator=address)
        return answer

    async def _apply(self, address: str, timeout: float) -> Control:
        presence = self._presence
        conn = await presence.peers.dial(address, timeout)
        answer: asyncio.Future[Control] = asyncio.get_running_loop().create_future()
        self._answers[conn] = answer
        options = presence.options
        apply = Apply(
            options.shared(), presence.after, presence.former, options.sequencer, options.site,
            options.gateway, options.voter, remembers=presence.after > 0,
        )  # fmt: skip
        conn.send(encode(apply))
        try:
            # Where this loop was held up, time is up and the answer has come: then it counts.
            # To be let in takes effect at once, and cannot be asked for a second time.
            await asyncio.wait((answer,), timeout=timeout)
            if not answer.done():
                raise TimeoutError(f"no answer within {timeout:g} s")
            got = answer.result()
        except BaseException:
            conn.close("given up")
            raise
        finally:
            del self._answers[conn]
        if not isinstance(got, Admitted):
            conn.close("no way in here")
        return got

    def asks(self, conn: Connection) -> bool:
        """Is the other side of this connection asked?"""
        return conn in self._answers

    def handle(self, conn: Connection, message: Control) -> None:
        """An answer of a seed. Being let in takes effect at once: packets may follow."""
        if isinstance(message, Apply):
            conn.send(encode(Refused("joining", "it is not in the cluster itself")))
            conn.close("refused")
            return
        if isinstance(
            message, Goodbye
        ):  # it leaves; whoever waits is told when the connection ends
            return
        answer = self._answers[conn]
        if answer.done():
            raise PeerError(f"{type(message).__name__} came twice")
        self._take(conn, message)
        answer.set_result(message)

    def _take(self, conn: Connection, message: Control) -> None:
        """An answer that cannot be is a fault of that seed: the others are asked."""
        if isinstance(message, Redirect):
            assert conn.hello is not None
            check_redirect(message.leader, conn.hello)
        elif isinstance(message, Admitted):
            self._presence.admitted(conn, message)

    def closed(self, conn: Connection, reason: str) -> None:
        """The seed hung up."""
        answer = self._answers.get(conn)
        if answer is not None and not answer.done():
            answer.set_exception(PeerError(reason))
