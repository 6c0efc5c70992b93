"""A node: one process of a cluster, with one stream of everything that its groups deliver."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from ordercast.core.ids import check_name
from ordercast.core.protocol import DeliveryLevel
from ordercast.errors import ConfigError, Dissolved, GroupClosed, NodeOut, UsageError
from ordercast.runtime.addresses import parse_address, parse_members, parse_seeds
from ordercast.runtime.closing import close_presence
from ordercast.runtime.exposure import check_exposure
from ordercast.runtime.group import Group
from ordercast.runtime.inbox import BatchStream, EventStream
from ordercast.runtime.joining import Joining
from ordercast.runtime.keywords import NodeKeywords, Tuning, unknown
from ordercast.runtime.lifetime import Lifetime, Outage
from ordercast.runtime.node_discovery import check_that_nobody_answers
from ordercast.runtime.options import (
    TRACE_LEVELS,
    NodeOptions,
    TraceLevel,
    check_durability,
    check_level,
    check_slow,
)
from ordercast.runtime.presence import Presence
from ordercast.runtime.receipt import Receipt
from ordercast.runtime.reentry import Reentry
from ordercast.runtime.retired import Retired
from ordercast.runtime.state import State
from ordercast.runtime.status import stats_of
from ordercast.runtime.stream_events import Event
from ordercast.transport.discovery import Discovery
from ordercast.transport.security import Security
from ordercast.transport.tcp import show_address
from ordercast.transport.tls import Tls
from ordercast.views.groups import SlowPolicy
from ordercast.wire.control import SESSION_BYTES, Hello

log = logging.getLogger("ordercast.runtime.node")

EVERYWHERE = ("0.0.0.0", "::", "")  # hosts to listen at, but no addresses to connect to


class Node:
    """One process of a cluster.

        async with Node("alice", bind="127.0.0.1:7700", bootstrap=True) as node:
            prices = await node.join("prices", order="total")
            await prices.multicast(b"IBM 191.2")
            async for event in node:
                ...

    Exactly one of these says where the cluster is: `seeds` (addresses of nodes that run), `members`
    (a static list of all nodes, name to address; the first node starts the cluster), `discover` (a
    multicast group where the node asks for the cluster; beside `bootstrap` or `seeds`, where others
    find the node). `bootstrap=True` starts the cluster: alone, at once; with `seeds` or `members`,
    if none of them runs. `trace` is a directory to record to: what the application sends and gets;
    with `trace_level="protocol"` also packets, and which messages were held back and why.
    `transport` is "tcp", "udp", `Udp(...)` or `IpMulticast(...)`. `tls` encrypts the connections,
    and nodes that do not have the `key` are not let in; without `tls` a node does not talk to other
    machines, unless `insecure=True`. `ordercast.runtime.keywords` and docs/API.md say what each
    option means.
    """

    def __init__(
        self,
        name: str,
        *,
        bind: str | None = None,
        bootstrap: bool = False,
        seeds: Iterable[str] = (),
        members: Mapping[str, str] | Iterable[str] | None = None,
        discover: Discovery | None = None,
        advertise: str | None = None,
        cluster: str = "ordercast",
        trace: str | Path | None = None,
        trace_level: TraceLevel = "application",
        run: str | None = None,
        tls: Tls | None = None,
        key: bytes | str | None = None,
        insecure: bool = False,
        sequencer: bool = False,
        **options: Unpack[Tuning],
    ) -> None:
        self._state = "new"
        self.name = check_name("node", name)
        self._cluster = check_name("cluster", cluster)
        self._options = _checked_options({**options, "discover": discover, "sequencer": sequencer})
        self._seeds = parse_seeds(seeds)
        self._members = None if members is None else parse_members(members)
        self._bootstrap = bootstrap
        self._find_place()
        self._bind = parse_address("bind", bind or self._default_bind())
        self._advertise = self._checked_advertise(advertise)
        self._security = Security.given(key, tls, insecure)
        check_exposure(self._security, self._options.transport, self._addresses())
        self._trace = None if trace is None else Path(trace)
        self._trace_level = _checked_level(trace_level, self._trace)
        self._run = None if run is None else check_name("run", run)
        self._lifetime = Lifetime(self._options.max_batch, _tell(weakref.ref(self)))
        self._retired = Retired()
        self._after = 0  # the incarnation before the next one
        self._former: tuple[str, ...] = ()  # nodes with which it comes over from another side
        self._returning: asyncio.Task[None] | None = None  # the way back from the latest outage
        self._closing: asyncio.Task[None] | None = None

    def _find_place(self) -> None:
        ways: dict[str, object] = {"seeds": self._seeds, "members": self._members}
        if not (self._bootstrap or self._seeds):  # with these, it only lets others find this node
            ways["discover"] = self._options.discover
        given = [f"{way}={value!r}" for way, value in ways.items() if value]
        if len(given) > 1 or not (given or self._bootstrap):
            raise ConfigError(
                f"{' and '.join(given) or 'neither bootstrap, seeds, members nor discover'} given: "
                "say with exactly one of seeds, members and discover where the cluster is; "
                "bootstrap=True starts it if none of them runs"
            )
        if self._members is not None:
            if self.name not in self._members:
                listed = ", ".join(self._members)
                raise ConfigError(
                    f"name={self.name!r} is not in members ({listed}): a node must be in the list"
                )
            others = (a for name, a in self._members.items() if name != self.name)
            self._seeds = tuple(others)  # the first one first: it starts the cluster
        starts = self._is_first if self._members else self._bootstrap and not self._seeds
        if starts and not self._options.may_begin(self.name):
            raise ConfigError(
                f"{self.name!r} does not vote, and is to start the cluster: only a node that votes "
                "can start one. Give this node the seeds of others; or let it vote, with "
                "voter=True and, if voters are listed, its name among them"
            )

    @property
    def _is_first(self) -> bool:
        """Is this node the first of a static list, which starts the cluster?"""
        return self._members is not None and self.name == next(iter(self._members))

    def _default_bind(self) -> str:
        return "127.0.0.1:0" if self._members is None else self._members[self.name]

    def _checked_advertise(self, advertise: str | None) -> str:
        if advertise is None:
            if self._bind[0] in EVERYWHERE:
                raise ConfigError(
                    f"bind={self._bind[0]}:{self._bind[1]} without advertise: others cannot "
                    "connect to that address; give advertise='host:port' as they see this node"
                )
            return ""
        if parse_address("advertise", advertise)[1] == 0:
            raise ValueError(f"advertise={advertise!r}: nobody can connect to port 0")
        return advertise

    def _addresses(self) -> Iterator[tuple[str, str]]:
        """Every address that this node was given, after the name of the option."""
        yield "bind", show_address(self._bind)
        if self._advertise:
            yield "advertise", self._advertise
        for name, address in (self._members or {}).items():
            yield f"members[{name!r}]", address
        for seed in self._seeds:
            yield "seeds", seed

    # -- lifetime ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take the port and get into the cluster. `async with` does this."""
        if self._state != "new":
            raise UsageError(f"node {self.name!r} was started already; make a new Node")
        self._presence = self._new_presence()
        self._joining = Joining(self._presence)
        self._state = "starting"
        try:
            await self._presence.peers.listen(self._bind)
            await self._get_in()
            if self._state != "starting":
                raise GroupClosed(f"node {self.name!r} was closed while it started")
        except BaseException:
            self._state = "closed"
            await close_presence(self._presence, self._joining, in_order=False)
            raise
        self._state = "running"

    def _new_presence(self) -> Presence:
        """Everything inside the next incarnation of this node."""
        hello = Hello(
            cluster=self._cluster, name=self.name, incarnation=0, advertise=self._advertise,
            session=b"" if self._options.transport == "tcp" else secrets.token_bytes(SESSION_BYTES),
        )  # fmt: skip
        return Presence(
            hello, self._options, self._trace, self._run, self._lifetime,
            trace_level=self._trace_level, security=self._security,
            only=None if self._members is None else frozenset(self._members),
            after=self._after, former=self._former, seeds=self._seeds,
        )  # fmt: skip

    async def _get_in(self) -> None:
        if not self._may_start_it:
            await self._presence.follow(self._seeds)
        elif running := await self._running_seeds():
            await self._presence.follow(running)
        else:
            self._presence.found(self.name, f"{self._cluster}-{time.time_ns()}")
        if self._presence.error is not None:
            raise self._presence.error
        self._presence.start_recording()

    @property
    def _may_start_it(self) -> bool:
        """Only a node that votes may: one with `bootstrap`, or the first of a static list."""
        return (self._bootstrap or self._is_first) and self._options.may_begin(self.name)

    async def _running_seeds(self) -> tuple[str, ...]:
        """The seeds that are in the cluster. If there are none, that is so when this returns."""
        presence, seeds = self._presence, self._seeds
        running = await presence.running(seeds, must_know=self._bootstrap)
        if not running and self._options.discover is not None:
            await check_that_nobody_answers(presence)
            running = await presence.running(seeds, must_know=self._bootstrap)
        return running

    # -- outages ----------------------------------------------------------------------------------

    def _ended(self, presence: Presence) -> None:
        """An incarnation ended by itself. If the reason may pass, the node comes back."""
        if presence is not self._presence:
            return  # it never got in
        error = presence.error
        if self._state == "running" and self._options.rejoin and isinstance(error, NodeOut):
            self._after = presence.me.incarnation
            self._former = () if presence.over_to is None else presence.over_to.former
            self._lifetime.go_out(Outage.ENDED, error, self._retired.sweep)
            self._retired.add(presence)
            self._returning = asyncio.ensure_future(self._way_back(presence).run(self._returning))
        else:
            self._lifetime.end(error)

    def _way_back(self, presence: Presence) -> Reentry:
        listed = () if self._members is None else self._members.values()
        known = (*presence.cluster_membership.addresses(), *self._seeds, *listed)
        return Reentry(
            presence, self._joining.to_rejoin(), new_presence=self._new_presence, adopt=self._adopt,
            addresses=[a for a in dict.fromkeys(known) if a != presence.me.address],
            bind=parse_address("bind", presence.peers.address), any_port=self._bind[1] == 0,
        )  # fmt: skip

    def _adopt(self, presence: Presence, joining: Joining) -> None:
        self._presence, self._joining = presence, joining
        self._lifetime.re_entries += 1

    async def _close(self) -> None:
        """Close the node, whether it is in its cluster, out of it, or on its way back."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.close_timeout
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.wait((self._returning,))
        try:
            await close_presence(self._presence, self._joining, in_order=True)
        finally:
            await self._retired.close(deadline - loop.time())

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave all groups and the cluster. Bounded by `close_timeout`; may be called again."""
        if self._state == "new":
            self._state = "closed"
        if self._state == "closed" and self._closing is None:
            return
        if self._closing is None:
            self._state = "closed"
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    def __del__(self) -> None:
        if getattr(self, "_state", "new") in ("starting", "running"):
            warnings.warn(
                f"node {self.name!r} was never closed: use 'async with', or await node.aclose()",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )
            self._presence.abandon()

    # -- groups and messages ----------------------------------------------------------------------

    async def join(
        self,
        group: str,
        order: str | None = None,
        *,
        protocol: str | None = None,
        scope: str | None = None,
        state: State | None = None,
        resilience: int | None = None,
        uniform: bool = False,
        delivery_level: DeliveryLevel | None = None,
        slow: SlowPolicy | None = None,
    ) -> Group:
        """Become a member; returns when this node's first view of the group is installed.

        The first member creates the group and fixes its order, its resilience, its delivery level
        and its policy for slow members: a member that asks for anything else gets `OrderMismatch`.
        With `resilience=k` a message is delivered when more than k members hold it, with
        `uniform=True` when more than half do; without either, the options of the node count.
        `delivery_level` is "causal", "preack" or "ack", for protocols with subgroups
        (`two_layered`). `slow` says what happens when the program of a member takes nothing for
        `slow_seconds`: with "wait", the default, all senders wait for it; with "exclude" it leaves
        the group. With `state` the call returns when the group's state is set here, and raises
        `StateUnavailable` if no member gives it.
        """
        await self._check_in()
        durability = check_durability(resilience, uniform)
        if durability is None:
            durability = check_durability(self._options.resilience, self._options.uniform)
        return Group(
            self,
            await self._joining.join(
                group,
                order,
                protocol,
                scope,
                state,
                durability=durability,
                level=check_level(delivery_level),
                slow=check_slow(slow),
            ),
        )

    async def send_to(self, group: str, body: Any) -> Receipt:
        """Send to a group without being a member: nothing of it is delivered here.

        The first call waits until the group has let this node in as a guest; later calls wait only
        for room, as `Group.multicast` does. Where this node is a member, it is that multicast.
        `UsageError` if there is no such group, or if its protocol is for members only.
        """
        while True:
            await self._check_in()
            try:
                sending = self._joining.guest_sessions.open.get(
                    group
                ) or await self._joining.sender(group)
                return await sending.multicast(body)
            except Dissolved:
                continue

    async def stop_sending_to(self, group: str) -> None:
        """Stop sending to the group as a guest. What was sent before still reaches its members."""
        await self._check_in()
        await self._joining.guest_sessions.stop(group)

    def __aiter__(self) -> AsyncIterator[Event]:
        """All messages and views of all groups of this node, in the order of delivery."""
        self._check_started()
        return EventStream(self._lifetime.inbox)

    def batches(self) -> AsyncIterator[list[Event]]:
        """The same stream in lists, for speed."""
        self._check_started()
        return BatchStream(self._lifetime.inbox)

    # -- what it is and how it is -----------------------------------------------------------------

    @property
    def address(self) -> str:
        """The address at which other nodes reach this one: they can use it as a seed."""
        self._check_started()
        return self._presence.peers.hello.advertise

    @property
    def incarnation(self) -> int:
        """A number that rises each time a node of this name comes into the cluster."""
        self._check_started()
        return self._presence.me.incarnation

    @property
    def leads(self) -> bool:
        """Does this node coordinate its cluster now?"""
        return (
            hasattr(self, "_presence")
            and self._presence.in_cluster
            and self._presence.cluster_membership.coordinates
        )

    def stats(self) -> dict[str, Any]:
        """Limits, how much of each is used, and counts, as plain data."""
        self._check_started()
        return stats_of(self._presence)

    def _check_started(self) -> None:
        if not hasattr(self, "_presence") or not self._presence.in_cluster:
            raise UsageError(f"node {self.name!r} was not started: use 'async with'")

    async def _check_in(self) -> None:
        """Raise if the node is not in; wait while it joins another side of a partition."""
        self._check_started()
        if isinstance(self._presence.error, Dissolved):
            await self._lifetime.wait_until_back()
        self._check_running()

    def _check_running(self) -> None:
        self._check_started()
        if self._presence.error is not None:
            raise self._presence.error.with_traceback(None)
        if self._presence.blocked is not None:
            raise self._presence.blocked.with_traceback(None)
        if self._state != "running":
            raise UsageError(f"node {self.name!r} is closed; make a new Node")

    def __repr__(self) -> str:
        return f"<Node {self.name!r}, {self._state}>"


def _tell(node: weakref.ref[Node]) -> Callable[[Presence], None]:
    """Tells a node that its `Presence` has ended, and does not keep the node alive for that."""

    def ended(presence: Presence) -> None:
        owner = node()
        if owner is not None:
            owner._ended(presence)
        else:
            presence.lifetime.end(presence.error)

    return ended


def _checked_level(level: TraceLevel, trace: Path | None) -> TraceLevel:
    if level not in TRACE_LEVELS:
        raise ValueError(f"trace_level={level!r} is none of {', '.join(map(repr, TRACE_LEVELS))}")
    if level == "protocol" and trace is None:
        raise ConfigError(
            f"trace_level={level!r} and trace=None: give a directory, as trace='traces'"
        )
    return level


def _checked_options(options: dict[str, Any]) -> NodeOptions:
    if wrong := unknown(options, NodeKeywords.__annotations__):
        raise TypeError(f"a Node has {wrong}")
    return NodeOptions.given(options)
