"""What one node can do. Each step of each node is computed once, however often it happens.

Two states of a node are equal if its stack is, if the same timers run, and if its log is the same:
the log is what is judged.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from ordercast.core.events import Event, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.state import canonical
from ordercast.machinery.sequencer_headers import Delivered, Status
from ordercast.membership.cluster_headers import CLUSTER_GROUP
from ordercast.membership.standing import Ask, Command
from ordercast.stack.clustered import ClusteredStack
from placings.scene import Doing, Scene, first_stacks, running, views_of

NodeState = int  # a number in `Nodes.known`
PacketNumber = int  # a number in `Nodes.packets`
Stimulus = PacketNumber | Doing | Event | Command
"""A packet, something that the node does, or whatever else happens to it"""

SHARED = frozenset(("protocols", "straight", "domains", "pages"))  # the same machines, again


class Entry(NamedTuple):
    """One line of a log."""

    kind: str  # send, deliver, view; fault: it blames a peer; error: it broke
    group: GroupId
    what: str  # the message; of a fault or an error, the reason
    sender: ProcessId = 0
    view: int = 0
    members: tuple[ProcessId, ...] = ()


class Packet(NamedTuple):
    """Something under way to one process."""

    dst: ProcessId
    receive: Receive

    @property
    def in_queue(self) -> bool:
        """Packets of the cluster stay in order; those of groups may overtake each other."""
        return self.receive.group == CLUSTER_GROUP


class Node(msgspec.Struct, frozen=True, eq=False):
    """One node in one state. It is never changed: a step makes another."""

    p: ProcessId
    stack: ClusteredStack
    print: bytes
    log: tuple[Entry, ...]
    done: frozenset[Doing] = frozenset()
    timers: frozenset[tuple[GroupId, str]] = frozenset()
    dead: bool = False

    def key(self) -> tuple[object, ...]:
        """Equal for equal states."""
        return self.p, self.print, self.log, self.done, self.timers, self.dead


class Reaction(NamedTuple):
    """What a stimulus does to a node."""

    after: NodeState
    sent: tuple[PacketNumber, ...]


class Nodes:
    """All states of all nodes that were met so far."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.doings = {p: [d for d in scene.doings if d.process == p] for p in scene.nodes}
        self.known: list[Node] = []
        self.numbers: dict[tuple[object, ...], NodeState] = {}
        self.packets: list[Packet] = []
        self.packet_numbers: dict[str, PacketNumber] = {}
        self.reactions: dict[tuple[NodeState, Stimulus], Reaction] = {}
        self.ready: list[tuple[Doing, ...]] = []  # what each state may do now

    def first(self) -> tuple[NodeState, ...]:
        """The nodes as the scene begins."""
        firsts = []
        for p, stack in first_stacks(self.scene).items():
            views = tuple(map(_viewed, views_of(stack, self.scene.groups)))
            firsts.append(self._number(Node(p, stack, _print(stack), views)))
        return tuple(firsts)

    def crash(self, state: NodeState) -> NodeState:
        """It stops for good."""
        return self._number(msgspec.structs.replace(self.known[state], dead=True))

    def react(self, state: NodeState, stimulus: Stimulus) -> Reaction:
        """What this stimulus does to a node in this state."""
        found = self.reactions.get((state, stimulus))
        if found is None:
            found = self.reactions[state, stimulus] = self._react(self.known[state], stimulus)
        return found

    def _react(self, node: Node, stimulus: Stimulus) -> Reaction:
        if isinstance(stimulus, int):
            return self._step(node, self.packets[stimulus].receive)
        if isinstance(stimulus, Timer):
            timers = node.timers - {(stimulus.group, stimulus.name)}
            return self._step(msgspec.structs.replace(node, timers=timers), stimulus)
        if isinstance(stimulus, Doing):
            node = msgspec.structs.replace(node, done=node.done | {stimulus})
            stimulus = stimulus.what
        if isinstance(stimulus, Multicast):
            said = Entry("send", stimulus.group, stimulus.payload.decode(), node.p)
            node = msgspec.structs.replace(node, log=(*node.log, said))
        return self._step(node, stimulus)

    def _step(self, node: Node, event: Event | Command) -> Reaction:
        stack = node.stack.copy()
        try:
            if isinstance(event, Ask):
                stack.open_group(event.group)
            out = stack.step((event,))
        except Exception as error:  # a find like any other
            broken = Entry("error", 0, f"{type(error).__name__}: {error}")
            log = (*node.log, broken)
            return Reaction(self._number(msgspec.structs.replace(node, log=log, dead=True)), ())
        after = msgspec.structs.replace(
            node,
            stack=stack,
            print=_print(stack),
            log=node.log + _entries(out),
            timers=node.timers | running(out.timers),
        )
        return Reaction(self._number(after), self._packets(node.p, out))

    def _packets(self, p: ProcessId, out: Output) -> tuple[PacketNumber, ...]:
        return tuple(
            self._packet(Packet(q, Receive(p, g, era, header, payload)))
            for to, g, era, header, payload in out.transmits
            if self.scene.marks or not isinstance(header, Delivered | Status)
            for q in to
        )

    def _packet(self, packet: Packet) -> PacketNumber:
        key = repr((packet.dst, canonical(packet.receive)))
        number = self.packet_numbers.setdefault(key, len(self.packets))
        if number == len(self.packets):
            self.packets.append(packet)
        return number

    def _number(self, node: Node) -> NodeState:
        number = self.numbers.setdefault(node.key(), len(self.known))
        if number == len(self.known):
            self.known.append(node)
            self.ready.append(self._doings(node))
        return number

    def _doings(self, node: Node) -> tuple[Doing, ...]:
        """Its next message, and all else that it has not done."""
        left = [d for d in self.doings[node.p] if not node.dead and d not in node.done]
        messages = [d for d in left if isinstance(d.what, Multicast)][:1]
        others = [d for d in left if not isinstance(d.what, Multicast)]
        delivered = {e.what for e in node.log if e.kind == "deliver"}
        return tuple(d for d in (*messages, *others) if not d.after or d.after in delivered)


def _entries(out: Output) -> tuple[Entry, ...]:
    delivered = (
        _viewed(row) if isinstance(row, View) else Entry("deliver", row[0], row[4].decode(), row[1])
        for row in out.deliveries
    )
    return (*delivered, *(Entry("fault", 0, reason, peer) for peer, reason in out.faults))


def _viewed(view: View) -> Entry:
    return Entry("view", view.group, "", 0, view.number, view.members)


def _print(stack: ClusteredStack) -> bytes:
    """Equal for equal stacks; the machines that several tables share are looked at once."""
    own: dict[str, Any] = {k: v for k, v in stack.state().items() if k not in SHARED}
    machines = {name: machine.state() for name, machine in stack.domains.items()}
    open_here = (sorted(stack.protocols), sorted(stack.straight))
    text = repr((canonical(own), canonical(machines), open_here))
    return blake2b(text.encode(), digest_size=16).digest()
