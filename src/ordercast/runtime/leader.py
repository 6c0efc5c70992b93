"""The node that leads the cluster.

It lets nodes in and gives them small numbers, it makes the groups, it numbers their views and,
in sequenced groups, their messages. It is the first node: of a static list, or the one started
with `bootstrap=True`. It may be a member of groups or only lead.

A node whose connection breaks is out for good, whether its process died or only its connection:
the leader cannot tell the two apart. Every group it was in gets a view without it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from ordercast.core.durability import Durability, in_words
from ordercast.core.events import Change
from ordercast.core.events import View as CoreView
from ordercast.core.ids import GroupId, ProcessId, check_name
from ordercast.errors import OrderMismatch, PeerError, UsageError
from ordercast.protocols.registry import PROTOCOLS, choose
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.control import (
    Admitted,
    Apply,
    Control,
    Enter,
    Entered,
    Evicted,
    Goodbye,
    GroupEntry,
    Leave,
    Left,
    Lost,
    NodeDown,
    NodeEntry,
    NodeUp,
    NotEntered,
    Prepared,
    PreparedToVisit,
    Recall,
    Refused,
    Visit,
    encode,
)
from ordercast.runtime.holdings import holdings_of
from ordercast.transport.tcp import Connection
from ordercast.wire.control import Hello

if TYPE_CHECKING:
    from ordercast.runtime.site import Site

log = logging.getLogger("ordercast.runtime.leader")


class LedGroup:
    """A group as its leader keeps it."""

    def __init__(self, entry: GroupEntry, *, sequenced: bool) -> None:
        self.entry = entry
        self.sequenced = sequenced
        self.members: set[ProcessId] = set()
        self.guests: set[ProcessId] = set()
        self.leaving: set[ProcessId] = set()  # their last acknowledgement may be missing


class Leader:
    """The leader's part of the control messages."""

    def __init__(self, site: Site, run: str, only: frozenset[str] | None) -> None:
        self._site = site
        self._run = run  # under which name the cluster records
        self._only = only  # names of a static list
        self._next_pid: ProcessId = site.me.pid + 1
        self._incarnations: dict[str, int] = {site.me.name: site.me.incarnation}
        self._groups: dict[GroupId, LedGroup] = {}
        self._by_name: dict[str, LedGroup] = {}
        self._evicted: OrderedDict[ProcessId, Evicted] = OrderedDict()  # the latest ones

    # -- this node's own groups -------------------------------------------------------------------

    async def enter(
        self, name: str, order: str, protocol: str | None, durability: Durability = None
    ) -> GroupEntry:
        group = self._group(name, order, protocol, durability)
        if isinstance(group, str):
            raise UsageError(group)
        _check_promise(group.entry, order, protocol, durability)
        return group.entry

    def prepared(self, gid: GroupId) -> None:
        self._admit(self._site.me.pid, gid)

    async def visit(self, name: str) -> GroupEntry:
        group = self._open_group(name)
        if isinstance(group, str):
            raise UsageError(group)
        return group.entry

    def prepared_to_visit(self, gid: GroupId) -> None:
        self._admit_guest(self._site.me.pid, gid)

    def leave(self, gid: GroupId) -> None:
        self._release(self._site.me.pid, gid)

    def left(self, gid: GroupId) -> None:
        self._groups[gid].leaving.discard(self._site.me.pid)

    def stop(self, reason: BaseException) -> None:
        """Nothing of the leader's waits for others."""

    async def stopped(self) -> None:
        """See `stop`."""

    # -- messages of others -----------------------------------------------------------------------

    def handle(self, conn: Connection, pid: ProcessId | None, message: Control) -> None:
        if pid is None:
            self._handle_stranger(conn, message)
        elif pid not in self._site.directory.live:
            return  # excluded a moment ago
        elif isinstance(message, Enter):
            self._enter(pid, message)
        elif isinstance(message, Prepared):
            self._admit(pid, message.gid)
        elif isinstance(message, Visit):
            self._visit(pid, message)
        elif isinstance(message, PreparedToVisit):
            self._admit_guest(pid, message.gid)
        elif isinstance(message, Leave):
            self._release(pid, message.gid)
        elif isinstance(message, Left):
            if message.gid in self._groups:
                self._groups[message.gid].leaving.discard(pid)
        elif isinstance(message, Lost):
            self._believe(pid, message)
        elif isinstance(message, Goodbye):
            self._remove(pid, "it was closed")
        else:
            raise PeerError(f"{type(message).__name__} is not for the leader")

    def _handle_stranger(self, conn: Connection, message: Control) -> None:
        assert conn.hello is not None
        if isinstance(message, Apply):
            self._consider(conn, conn.hello, message)
        elif isinstance(message, Recall):
            self._recall(conn, conn.hello, message)
        elif not isinstance(message, Goodbye):
            raise PeerError(f"{type(message).__name__} from a node that was not let in")

    def _believe(self, pid: ProcessId, lost: Lost) -> None:
        """A member lost another one: the first word that comes is believed."""
        if lost.pid in (pid, self._site.me.pid):
            raise PeerError("it reports itself, or the leader, as lost")
        if lost.pid in self._site.directory.live:
            who = self._site.directory.names[pid]
            self.exclude(lost.pid, f"{who} lost it: {lost.reason}")

    def _recall(self, conn: Connection, hello: Hello, recall: Recall) -> None:
        node = self._site.directory.live.get(recall.pid)
        if node is not None:
            if node is self._site.me or (node.name, node.incarnation) != (
                hello.name,
                recall.incarnation,
            ):
                raise PeerError(f"it asks what became of {node.identity}, which it is not")
            # Nobody asks this whose connection works: the break may only not be known here yet.
            self.exclude(node.pid, "its connection broke")
        unknown = Evicted("", 0, "it is not known here")
        conn.send(encode(self._evicted.get(recall.pid, unknown)))

    # -- nodes ------------------------------------------------------------------------------------

    def _consider(self, conn: Connection, hello: Hello, apply: Apply) -> None:
        refusal = self._objection(hello, apply)
        if refusal is not None:
            log.info("refused %s: %s", hello.name, refusal.text)
            conn.send(encode(refusal))
            conn.close("refused")
            return
        site = self._site
        incarnation = self._incarnations.get(hello.name, 0) + 1
        self._incarnations[hello.name] = incarnation
        node = NodeEntry(self._next_pid, hello.name, incarnation, hello.advertise)
        self._next_pid += 1
        site.peers.tell_all(NodeUp(node))
        nodes = tuple(site.directory.live.values())
        site.directory.add(node)
        site.peers.bind(conn, node.pid)
        site.peers.tell(node.pid, Admitted(node, site.me.pid, nodes, self._run))
        log.info("%s is in, at %s", node.identity, node.address)

    def _objection(self, hello: Hello, apply: Apply) -> Refused | None:
        site = self._site
        try:
            parse_address("advertise", hello.advertise)
        except ValueError as reason:
            return Refused("address", str(reason))
        if self._only is not None and hello.name not in self._only:
            listed = ", ".join(sorted(self._only))
            return Refused("members", f"{hello.name!r} is not in the member list ({listed})")
        namesake = site.directory.named(hello.name)
        if namesake is not None:
            return Refused(
                "name",
                f"a node named {hello.name!r} is in the cluster, at {namesake.address}; "
                "names are unique: choose another one, or stop that node first",
            )
        if len(site.directory.live) >= site.options.max_nodes:
            return Refused("full", f"the cluster has max_nodes={site.options.max_nodes} nodes")
        if self._next_pid >= site.options.max_starts:
            limit = site.options.max_starts
            return Refused("full", f"the cluster has let in max_starts={limit} nodes in its life")
        for option, mine in site.options.shared().items():
            theirs = apply.shared.get(option)
            if theirs != mine:
                return Refused(
                    "config",
                    f"{option}={theirs!r} here, {option}={mine!r} at the leader: "
                    f"{option} must be the same on all nodes of a cluster",
                )
        return None

    def lost(self, pid: ProcessId, reason: str) -> None:
        if pid in self._site.directory.live:
            self.exclude(pid, f"its connection broke ({reason})")

    def unbound_closed(self, conn: Connection, reason: str) -> None:
        """Somebody who was not let in: nothing to do."""

    def exclude(self, pid: ProcessId, reason: str) -> None:
        """Go on without a node that cannot be reached, and tell it if it can be told."""
        site = self._site
        assert pid != site.me.pid, "a leader cannot go on without itself"
        group, view = self._first_view_without(pid)
        evicted = Evicted(group, view, reason)
        self._evicted[pid] = evicted
        if len(self._evicted) > site.options.max_nodes:
            self._evicted.popitem(last=False)
        log.warning("%s is excluded: %s", site.directory.identities[pid], reason)
        site.peers.part(pid, "excluded", evicted)
        if site.recorder is not None:
            site.recorder.crash_of(site.directory.identities[pid])
            site.wake()  # to the disk, even if nothing else is recorded here
        self._remove(pid, reason)

    def _first_view_without(self, pid: ProcessId) -> tuple[str, int]:
        for group in self._groups.values():
            if pid in group.members:
                return group.entry.name, self._site.engine.view_number(group.entry.gid) + 1
        return "", 0

    def _remove(self, pid: ProcessId, reason: str) -> None:
        self._site.directory.remove(pid)
        for gid, group in self._groups.items():
            # A sequencer has numbered the last view of a leaver already: the next would be empty.
            present = pid in group.members or pid in group.guests
            if present or (pid in group.leaving and not group.sequenced):
                self._site.engine.step([Change(gid, dead=(pid,))])
            for processes in (group.members, group.guests, group.leaving):
                processes.discard(pid)
        self._site.engine.forget(pid)
        self._site.peers.tell_all(NodeDown(pid, reason))

    # -- groups -----------------------------------------------------------------------------------

    def _group(
        self, name: str, order: str, protocol: str | None, durability: Durability
    ) -> LedGroup | str:
        """The group of that name, made if need be; or why it cannot be made."""
        group = self._by_name.get(name)
        if group is None:
            if len(self._groups) >= self._site.options.max_groups:
                return f"the cluster has max_groups={self._site.options.max_groups} groups"
            chosen = choose(order, protocol)
            gid = len(self._groups) + 1
            entry = GroupEntry(
                gid, name, order, chosen.declaration.name, chosen.header_version, durability
            )
            group = LedGroup(entry, sequenced=chosen.declaration.sequenced)
            self._groups[gid] = self._by_name[name] = group
            self._site.group_names[gid] = name
            self._site.engine.open(gid, chosen, self._site.me.pid, durability)
            self._site.engine.step([CoreView(gid, 0, (), leader=self._site.me.pid)])
        return group

    def _enter(self, pid: ProcessId, enter: Enter) -> None:
        try:
            check_name("group", enter.group)
            group = self._group(enter.group, enter.order, enter.protocol, enter.durability)
        except ValueError as reason:  # a name that is none, a protocol only the other side knows
            group = str(reason)
        if isinstance(group, str):
            answer: Control = NotEntered(enter.request, "", group)
        elif not _fits(group.entry, enter.order, enter.protocol, enter.durability):
            answer = NotEntered(enter.request, group.entry.promise, "")
        else:
            answer = Entered(enter.request, group.entry)
        self._site.peers.tell(pid, answer)

    def _open_group(self, name: str) -> LedGroup | str:
        """The group of that name, if others may send to it; or why they cannot."""
        group = self._by_name.get(name)
        if group is None:
            known = ", ".join(map(repr, self._by_name))
            there_is = f"there is {known}" if known else "there is none yet"
            return f"no group {name!r} to send to: {there_is}; a group is made by its first member"
        declared = PROTOCOLS[group.entry.protocol].declaration
        if not declared.closed:
            return group
        return (
            f"only members can send to group {name!r}: its protocol {declared.name!r} is for "
            f"closed groups, as {declared.closed}. Join it{_open_alternative(group.entry.order)}"
        )

    def _visit(self, pid: ProcessId, visit: Visit) -> None:
        group = self._open_group(visit.group)
        answer: Control
        if isinstance(group, str):
            answer = NotEntered(visit.request, "", group)
        else:
            answer = Entered(visit.request, group.entry)
        self._site.peers.tell(pid, answer)

    def _admit_guest(self, pid: ProcessId, gid: GroupId) -> None:
        group = self._groups.get(gid)
        if group is None or pid in group.members or pid in group.guests:
            raise PeerError(f"it cannot be a guest of group {gid}")
        if PROTOCOLS[group.entry.protocol].declaration.closed:
            raise PeerError(f"only members may send to group {gid}")
        group.guests.add(pid)
        group.leaving.discard(pid)
        self._site.engine.step([Change(gid, guests=(pid,))])

    def _admit(self, pid: ProcessId, gid: GroupId) -> None:
        group = self._groups.get(gid)
        if group is None or pid in group.members or pid in group.guests:
            raise PeerError(f"it cannot be prepared for group {gid}")
        group.members.add(pid)
        group.leaving.discard(pid)
        self._site.engine.step([Change(gid, joined=(pid,))])

    def _release(self, pid: ProcessId, gid: GroupId) -> None:
        group = self._groups.get(gid)
        if group is None or not (pid in group.members or pid in group.guests):
            raise PeerError(f"it is not in group {gid}")
        group.members.discard(pid)
        group.guests.discard(pid)
        group.leaving.add(pid)
        self._site.engine.step([Change(gid, left=(pid,))])

    def stats(self) -> dict[str, object]:
        """The limits of the whole cluster, and what is kept for groups that it may not be in."""
        options = self._site.options
        holdings = [holdings_of(self._site.engine.stack, gid) for gid in self._groups]
        return {
            "starts": self._next_pid,
            "max_starts": options.max_starts,
            "groups": len(self._groups),
            "max_groups": options.max_groups,
            "frames_held": max((held["frames_held"] for held in holdings), default=0),
            "max_held": options.max_held,
            "history": sum(held["history"] for held in holdings),
            "views_wait_for": self._awaited(),
        }

    def _awaited(self) -> dict[str, list[str]]:
        """Groups whose next view is under way, and whose reports it lacks."""
        stack, directory = self._site.engine.stack, self._site.directory
        awaited = {g.entry.name: stack.waits_for(gid) for gid, g in self._groups.items()}
        return {name: list(directory.identities_of(who)) for name, who in awaited.items() if who}

    def groups(self) -> list[dict[str, object]]:
        """For the status: every group of the cluster and its members."""
        names = self._site.directory.names
        return [
            {
                "name": group.entry.name,
                "order": group.entry.order,
                "protocol": group.entry.protocol,
                "members": [names[pid] for pid in sorted(group.members)],
                "guests": [names[pid] for pid in sorted(group.guests)],
            }
            for group in self._groups.values()
        ]


def _open_alternative(order: str) -> str:
    declared = (protocol.declaration for protocol in PROTOCOLS.values())
    names = [d.name for d in declared if order in d.orders and not d.closed]
    if not names:
        return f"; for order {order!r} there is no protocol that lets others send"
    return (
        f"; or make a group with order {order!r} and a protocol that lets others send: "
        f"{', '.join(names)}"
    )


def _fits(group: GroupEntry, order: str, protocol: str | None, durability: Durability) -> bool:
    return (
        group.order == order
        and protocol in (None, group.protocol)
        and durability in (None, group.durability)
    )


def _check_promise(
    group: GroupEntry, order: str, protocol: str | None, durability: Durability
) -> None:
    if not _fits(group, order, protocol, durability):
        raise OrderMismatch(group.name, group.promise, wanted(order, protocol, durability))


def wanted(order: str, protocol: str | None, durability: Durability = None) -> str:
    """What a join asked for, in words."""
    named = f"protocol {protocol!r}" if protocol else ""
    how = ", ".join(filter(None, (named, in_words(durability))))
    return f"order {order!r}" + (f" ({how})" if how else "")
