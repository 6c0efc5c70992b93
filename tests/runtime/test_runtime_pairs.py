"""Features in pairs, live: clusters in one process whose groups have different settings.

Every two settings that may meet do meet in some combination. A third group has the protocol of the
first and the durability of the second. In each combination members and guests send, one node is
killed, those who stay send again, and the oracle judges what all have read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import ordercast as oc
from certificates import signed
from datagrams import free_group
from ordercast.errors import GroupClosed
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from sweep.cluster_arenas import wanted
from sweep.covering import Row, allowed_pairs, covering_array, pairs_of
from sweep.pairs import excluded as excluded_of_groups

KEY = "a key that nobody can guess, of course"
PATIENCE = 60.0  # a guard; nothing here takes so long

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "protocol": (
        "sequencing", "sequencing_hybrid", "sequencing_causal", "block_total", "sequencer_pb",
        "javagroups", "agreed", "cbcast", "two_layered", "global_fifo", "nak", "uniform",
    ),
    "resilience": (None, 1),
    "uniform": (False, True),
    "guests": (False, True),  # a member of the other group sends to this one
    "open": (False, True),  # a node that is in no group sends to this one
    "delivery_level": (None, "ack"),
    "state": (False, True),
    "bodies_apart": (False, True),
    "sequencers": (0, 1, 2),
    "sites": (False, True),
    "codec": (None, "json", "msgpack"),
    "transport": ("tcp", "udp", "multicast"),
    "security": ("none", "key", "tls and key"),
    "partition": ("primary", "merge"),
    "reading": ("single", "batches"),
    "trace_level": ("application", "protocol"),
}  # fmt: skip


def excluded(row: Row) -> bool:
    """Settings that a node refuses."""
    encrypted = "tls" in row.get("security", "")
    return excluded_of_groups(row) or (encrypted and row.get("transport", "tcp") != "tcp")


ROWS = covering_array(PARAMETERS, excluded)


class Program:
    """What runs at one node: it reads everything, and keeps the bodies of each group."""

    def __init__(self, node: oc.Node, *, batches: bool) -> None:
        self.node = node
        self.bodies: dict[str, list[str]] = {"one": [], "two": [], "three": []}
        self.members: dict[str, tuple[str, ...]] = {}
        self.ended: BaseException | None = None
        self.changed = asyncio.Event()
        self.reading = asyncio.ensure_future(self._read(batches=batches))

    async def _read(self, *, batches: bool) -> None:
        try:
            if batches:
                async for batch in self.node.batches():
                    for event in batch:
                        self._take(event)
            else:
                async for event in self.node:
                    self._take(event)
        except (oc.NodeEnded, GroupClosed) as error:
            self.ended = error
            self.changed.set()

    def _take(self, event: oc.Message | oc.View) -> None:
        if isinstance(event, oc.View):
            self.members[event.group] = event.members
        else:
            body = event.body
            self.bodies[event.group].append(body if isinstance(body, str) else body.decode())
        self.changed.set()

    def state(self, group: str) -> oc.State:
        """The bodies of a group are its state."""

        def put(raw: bytes) -> None:
            self.bodies[group] = json.loads(raw)

        return oc.State(get=lambda: json.dumps(self.bodies[group]).encode(), set=put)

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            assert self.ended is None, self.ended
            self.changed.clear()
            await self.changed.wait()


class Stage:
    """Four members, and who else there is."""

    def __init__(self, one: Row, two: Row) -> None:
        durability = {name: two[name] for name in ("resilience", "uniform")}
        self.rows = {"one": one, "two": two, "three": {**one, **durability}}
        self.members = {
            "one": ["p1", "p2", "p3"], "two": ["p2", "p3", "p4"], "three": ["p1", "p2", "p4"]
        }  # fmt: skip
        self.guests: dict[str, list[str]] = {}
        self.programs: dict[str, Program] = {}
        self.groups: dict[tuple[str, str], oc.Group] = {}
        self.said: dict[str, set[str]] = {group: set() for group in self.rows}
        for group, other in (("one", "p4"), ("two", "p1"), ("three", "p3")):
            row = self.rows[group]
            self.guests[group] = [other] * row["guests"] + ["outsider"] * row["open"]

    async def join(self) -> None:
        """One after the other; what the first say, those who come later get as state."""
        for group, row in self.rows.items():
            for name in self.members[group]:
                program = self.programs[name]
                self.groups[group, name] = await program.node.join(
                    group,
                    protocol=row["protocol"],
                    scope="group",  # two protocols of one order promise nothing between them
                    resilience=row["resilience"],
                    uniform=row["uniform"],
                    delivery_level=row["delivery_level"],
                    state=program.state(group) if row["state"] else None,
                )
        for group, names in self.members.items():
            for name in names:
                await self.sees(name, group)

    async def sees(self, name: str, group: str) -> None:
        """The program has the view in which all members are that live."""
        program, expected = self.programs[name], set(self.members[group])
        await program.until(lambda: set(program.members.get(group, ())) == expected)

    async def talk(self, label: str) -> None:
        """Each one says something in each of its groups."""
        for group in self.rows:
            for name in (*self.members[group], *self.guests[group]):
                for number in range(2):
                    await self._say(group, name, f"{label} {name} {number}")

    async def _say(self, group: str, name: str, text: str) -> None:
        codec = self.rows["one"]["codec"]
        body: Any = text.encode() if codec is None else text
        self.said[group].add(text)
        if name in self.members[group]:
            await self.groups[group, name].multicast(body)
        else:
            await self.programs[name].node.send_to(group, body)

    async def kill(self, name: str) -> None:
        """Its connections break, it says nothing; the others go on without it."""
        self.programs[name].node._presence.fail(GroupClosed("this node was killed"))
        for group in self.rows:
            self.members[group] = [m for m in self.members[group] if m != name]
            self.guests[group] = [m for m in self.guests[group] if m != name]
        for group, names in self.members.items():
            for other in names:
                await self.sees(other, group)

    async def all_have_read_everything(self) -> None:
        for group, names in self.members.items():
            for name in names:
                program = self.programs[name]
                await program.until(lambda g=group, p=program: self.said[g] <= set(p.bodies[g]))


@asynccontextmanager
async def stage(one: Row, two: Row, folder: Path) -> AsyncIterator[Stage]:
    """Nodes with the settings of the first row, which has what concerns whole nodes."""
    found = Stage(one, two)
    transport = (
        oc.IpMulticast(free_group()) if one["transport"] == "multicast" else one["transport"]
    )
    sequencers = [f"sequencer-{number}" for number in range(1, one["sequencers"] + 1)]
    everybody = [*sequencers, "p1", "p2", "p3", "p4", "outsider"]
    async with AsyncExitStack() as nodes:
        first: oc.Node | None = None
        for place, name in enumerate(everybody):
            node = oc.Node(
                name,
                **({"bootstrap": True} if first is None else {"seeds": [first.address]}),
                **_security(one, name),
                sequencer=name in sequencers,
                site=("tokyo", "quito")[place % 2] if one["sites"] else "",
                codec=one["codec"],
                transport=transport,
                partition=one["partition"],
                bodies_apart=one["bodies_apart"],
                trace=folder,
                trace_level=one["trace_level"],
                join_timeout=PATIENCE,
                suspect_ms=round(1000 * PATIENCE),  # a kill breaks connections, which is enough
                rejoin=False,
            )
            first = first or node
            await nodes.enter_async_context(node)
            found.programs[name] = Program(node, batches=one["reading"] == "batches")
        yield found
    for program in found.programs.values():
        await program.reading


def _security(row: Row, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "key" in row["security"]:
        found["key"] = KEY
    if "tls" in row["security"]:
        found["tls"] = signed(name)
    return found


def verdicts(folder: Path, rows: dict[str, Row]) -> dict[str, str]:
    """What the oracle says against each group's protocol."""
    events = read_events(folder)
    groups: dict[str, set[str | None]] = {}
    for group, row in rows.items():
        groups.setdefault(row["protocol"], {None}).add(group)
    found: dict[str, str] = {}
    for protocol, names in groups.items():
        trace = [event for event in events if event.group in names]
        judged = judge(trace, only=wanted(PROTOCOLS[protocol]))
        bad = {name: one for name, one in judged.items() if one.verdict != "ok"}
        found.update((f"{protocol} {name}", str(one)) for name, one in bad.items())
    return found


@pytest.mark.parametrize("number", range(len(ROWS)))
async def test_groups_of_different_settings_at_the_same_nodes_keep_their_promises(
    tmp_path: Path, number: int
) -> None:
    one, two = ROWS[number], ROWS[(number + 1) % len(ROWS)]
    async with asyncio.timeout(PATIENCE), stage(one, two, tmp_path) as live:
        await live.join()
        await live.talk("before")
        await live.all_have_read_everything()
        await live.kill(("p1", "p2", "p3", "p4")[number % 4])
        await live.talk("after")
        await live.all_have_read_everything()
        members = {g: [live.programs[m].bodies[g] for m in live.members[g]] for g in live.rows}
    for group, bodies in members.items():
        assert all(sorted(had) == sorted(live.said[group]) for had in bodies), (group, one, two)
    assert verdicts(tmp_path, live.rows) == {}, (one, two)


def test_every_pair_of_settings_is_in_some_combination() -> None:
    met = {pair for row in ROWS for pair in pairs_of(PARAMETERS, row)}
    assert met == allowed_pairs(PARAMETERS, excluded).keys()
