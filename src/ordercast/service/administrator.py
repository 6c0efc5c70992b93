"""Administers a cluster from outside: asks any node, which sends it on to the coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from ordercast.errors import PeerError, UsageError
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.administration import HOLD_SECONDS, AdminRequest
from ordercast.runtime.control import (
    Control,
    Done,
    DrainRequest,
    ForgetRequest,
    MigrateRequest,
    NotDone,
    Redirect,
    RefoundRequest,
    TableReply,
    TableRequest,
    UnderWay,
    UndrainRequest,
)
from ordercast.runtime.exposure import check_address
from ordercast.runtime.placement import GroupRow, SequencerRow
from ordercast.runtime.query_client import QueryClient
from ordercast.runtime.reasons import why_unreachable
from ordercast.runtime.status_decoding import decode_answer
from ordercast.transport.security import NONE, Security
from ordercast.transport.tcp import connect
from ordercast.wire.control import Hello

PAUSE = 0.1  # seconds before a node that just changed is asked again
MAX_ROWS = 1_000_000  # of a table; more is a mistake of the node

R = TypeVar("R", GroupRow, SequencerRow)

ANSWERS: tuple[type[Control], ...] = (TableReply, Done, UnderWay, NotDone, Redirect)


class Administrator:
    """Speaks with the cluster of some nodes.

    `ConnectionError` if none of them answers, `TimeoutError` if it takes longer than `timeout`
    seconds, `UsageError` if the cluster says that the request cannot be carried out.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        *,
        cluster: str = "ordercast",
        timeout: float = 5.0,
        security: Security = NONE,
    ) -> None:
        if not nodes:
            raise ValueError("no node was named; give host:port of any node of the cluster")
        for address in nodes:
            check_address(security, "node", address)
        if not timeout > 0:
            raise ValueError(f"timeout={timeout} must be positive")
        self._nodes = tuple(nodes)
        self._hello = Hello(cluster=cluster, name="administrator", incarnation=0)
        self._timeout = timeout
        self._security = security
        self._search = _Search()  # the latest

    # -- tables -----------------------------------------------------------------------------------

    async def groups(self) -> list[GroupRow]:
        """Every group, and who numbers its messages."""
        return await self._table("groups", GroupRow)

    async def sequencers(self) -> list[SequencerRow]:
        """Every node that numbers messages, or would."""
        return await self._table("sequencers", SequencerRow)

    async def _table(self, table: str, kind: type[R]) -> list[R]:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._pages(table, kind)
        except TimeoutError:
            nodes = ", ".join(self._nodes)
            raise TimeoutError(
                f"no answer from {nodes} within {self._timeout:g} s{self._search.told()}"
            ) from None

    async def _pages(self, table: str, kind: type[R]) -> list[R]:
        rows: list[R] = []
        while True:
            after = rows[-1].name if rows else ""
            answer, payload, address = await self._ask(TableRequest(table, after))
            if not isinstance(answer, TableReply):
                named = type(answer).__name__
                raise PeerError(f"{named} of {address} is no answer to a TableRequest")
            page = _rows(address, payload, kind, after)
            rows += page
            if not answer.more:
                return rows
            if not page or len(rows) > MAX_ROWS:
                raise PeerError(f"the table {table!r} of {address} has no end")

    # -- requests ---------------------------------------------------------------------------------

    async def migrate(self, group: str, to: str) -> None:
        """Let that node number the messages of the group; returns when it does."""
        await self._request(
            MigrateRequest(group, to), f"group {group!r} is still on its way to {to!r}"
        )

    async def drain(self, node: str) -> None:
        """Let that node number nothing any more; returns when others have its groups."""
        await self._request(DrainRequest(node), f"{node!r} still has groups")

    async def undrain(self, node: str) -> None:
        """Let that node number messages again."""
        await self._request(UndrainRequest(node), f"{node!r} is still drained")

    async def refound(self, group: str) -> None:
        """Let an empty group wait for nobody who is absent and may have newer state."""
        await self._request(RefoundRequest(group), f"group {group!r} still waits")

    async def forget(self, nodes: Sequence[str], view: int) -> None:
        """Declare that these nodes are gone; none: all that are not here. `view`: the number of the
        node view for which that is meant. The node that is asked need not have a majority."""
        await self._request(
            ForgetRequest(tuple(nodes), view), f"no node view after {view} is in force"
        )

    async def _request(self, request: AdminRequest, unfinished: str) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    answer, _, _ = await self._ask(request)
                    if isinstance(answer, Done):
                        return
                    await asyncio.sleep(PAUSE)
        except TimeoutError:
            raise TimeoutError(
                f"{unfinished} after {self._timeout:g} s{self._search.told()}; it goes on, and the "
                "same command waits for its end"
            ) from None

    # -- asking -----------------------------------------------------------------------------------

    async def _ask(self, question: Control) -> tuple[Control, bytes, str]:
        """The coordinator's answer, and its address. It is looked for while the cluster changes."""
        while True:
            search = self._search = _Search()
            for address in self._nodes:
                found = await self._ask_from(address, question, search)
                if found is not None:
                    return found
            if not search.sent_on:
                raise ConnectionError(f"no node of the cluster answers{search.told()}")
            await asyncio.sleep(PAUSE)

    async def _ask_from(
        self, address: str, question: Control, search: _Search
    ) -> tuple[Control, bytes, str] | None:
        """Ask that node, or the one to which it sends us; None if it is no use now."""
        try:
            answer, payload = await self._ask_one(address, question)
            if isinstance(answer, Redirect):
                search.sent_on = True
                address = self._checked(answer.leader)
                answer, payload = await self._ask_one(address, question)
        except (OSError, PeerError) as reason:
            search.reasons[address] = why_unreachable(reason).removeprefix(f"{address}: ")
            return None
        if isinstance(answer, Redirect):
            search.reasons[address] = "another node named it as the coordinator, and it is not"
            return None
        if isinstance(answer, NotDone):
            if answer.reason != "out":
                raise UsageError(answer.text)
            search.reasons[address] = answer.text
            return None
        return answer, payload, address

    def _checked(self, leader: str) -> str:
        """The address that a node sent us to."""
        try:
            check_address(self._security, "coordinator", leader)
        except ValueError as reason:
            raise PeerError(str(reason)) from None
        return leader

    async def _ask_one(self, address: str, question: Control) -> tuple[Control, bytes]:
        host, port = parse_address("address", address)
        client = QueryClient()
        timeout = self._timeout + HOLD_SECONDS
        conn = await connect(
            host, port, hello=self._hello, handler=client, timeout=timeout, security=self._security
        )
        try:
            return await client.ask_any(conn, question, ANSWERS, timeout)
        finally:
            conn.close("asked")


class _Search:
    """One round over the nodes that were named."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}  # by address: why it did not answer
        self.sent_on = False  # some node answered, and named the coordinator

    def told(self) -> str:
        """The reasons, as the end of a sentence."""
        reasons = "; ".join(f"{address}: {reason}" for address, reason in self.reasons.items())
        return f" ({reasons})" if reasons else ""


def _rows(address: str, payload: bytes, kind: type[R], after: str) -> list[R]:
    """Rows in the order of their names, as they must be."""
    shape: type[list[R]] = list[kind]  # type: ignore[valid-type]
    rows = decode_answer(address, payload, shape, "table")
    for row in rows:
        if row.name <= after:
            raise PeerError(f"the rows of the table of {address} are not in order")
        after = row.name
    return rows
