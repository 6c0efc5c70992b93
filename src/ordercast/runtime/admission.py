"""How a node finds its cluster: ask the seeds until one of them lets it in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ordercast.errors import ConfigError, JoinTimeout, PeerError, UsageError
from ordercast.runtime.control import Admitted, Apply, Control, Redirect, Refused, encode
from ordercast.runtime.reasons import why_unreachable
from ordercast.transport.tcp import Connection

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

PAUSE = 0.05  # seconds between two rounds over the seeds
ATTEMPT = 3.0  # seconds that one seed gets


class Admission:
    """One node's way in. It is the node's role until a seed has let it in."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._answers: dict[Connection, asyncio.Future[Control]] = {}

    async def ask(self, seeds: tuple[str, ...], timeout: float) -> Admitted:
        """Ask all seeds, again and again, until one lets us in; or the reasons why none did."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        reasons: dict[str, str] = {}
        while True:
            for seed in seeds:
                left = deadline - loop.time()
                try:
                    return await self._ask_one(seed, min(ATTEMPT, max(left, 0.05)))
                except (OSError, PeerError) as reason:
                    reasons[seed] = why_unreachable(reason).removeprefix(f"{seed}: ")
            if loop.time() + PAUSE >= deadline:
                raise JoinTimeout(reasons, timeout)
            await asyncio.sleep(PAUSE)

    async def _ask_one(self, seed: str, timeout: float) -> Admitted:
        answer = await self._apply(seed, timeout)
        if isinstance(answer, Redirect):
            leader = answer.leader
            answer = await self._apply(leader, timeout)
            if isinstance(answer, Redirect):
                raise PeerError(f"{seed} sent us to {leader}, which does not lead")
        if isinstance(answer, Refused):
            if answer.reason == "joining":
                raise PeerError(answer.text)  # it may be in soon, as may another seed
            raise (ConfigError if answer.reason == "config" else UsageError)(answer.text)
        if not isinstance(answer, Admitted):
            raise PeerError(f"{seed} answered with {type(answer).__name__}")
        return answer

    async def _apply(self, address: str, timeout: float) -> Control:
        presence = self._presence
        conn = await presence.peers.dial(address, timeout)
        answer: asyncio.Future[Control] = asyncio.get_running_loop().create_future()
        self._answers[conn] = answer
        options = presence.options
        apply = Apply(
            options.shared(), presence.after, presence.former, options.sequencer, options.site,
            options.gateway,
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

    def handle(self, conn: Connection, message: Control) -> None:
        """An answer of a seed. Being let in takes effect at once: packets may follow."""
        if isinstance(message, Apply):
            conn.send(encode(Refused("joining", "it is not in the cluster itself")))
            conn.close("refused")
            return
        answer = self._answers.get(conn)
        if answer is None or answer.done():
            raise PeerError(f"{type(message).__name__} came unasked")
        if isinstance(message, Admitted):
            self._presence.admitted(conn, message)
        answer.set_result(message)

    def closed(self, conn: Connection, reason: str) -> None:
        """The seed hung up."""
        answer = self._answers.get(conn)
        if answer is not None and not answer.done():
            answer.set_exception(PeerError(reason))
