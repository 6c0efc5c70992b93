"""The states of a scene, what can happen in each, and where that leads.

A process does its next thing; a packet arrives; the one that is struck crashes; the others see it.
Packets of the cluster from one node to another stay in order, as on a connection; all others may
arrive in any order. None is lost but those to a process that crashed: what a crash takes with it
might as well arrive late, when the survivors have reported, and then it must change nothing.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from ordercast.core.ids import ProcessId
from ordercast.membership.standing import Broken
from placings.nodes import Nodes, NodeState, PacketNumber, Stimulus
from placings.scene import Doing, Scene

T = TypeVar("T")

Inbox = tuple[PacketNumber, ...]
WAITS, STRUCK, SEEN = 0, 1, 2  # the crash is to come, has come, is known to the one that acts


class State(NamedTuple):
    """Everything that decides what can happen next, and what was delivered."""

    nodes: tuple[NodeState, ...]
    inboxes: tuple[Inbox, ...]  # packets of groups, sorted
    queues: tuple[tuple[Inbox, ...], ...]  # packets of the cluster, for each receiver and sender
    crash: int


class Action(NamedTuple):
    """One thing that can happen."""

    kind: str  # do, arrive, crash, see
    p: ProcessId  # to whom
    what: Doing | PacketNumber | None = None


class Space:
    """The states of one scene."""

    def __init__(self, scene: Scene, *, prune: bool = True) -> None:
        self.scene = scene
        self.prune = prune
        self.nodes = Nodes(scene)
        self.place = {p: place for place, p in enumerate(scene.nodes)}
        self.voids: dict[tuple[NodeState, PacketNumber], bool] = {}

    def first(self) -> State:
        """Nothing is under way."""
        size = len(self.scene.nodes)
        crash = SEEN if self.scene.struck is None else WAITS
        return State(self.nodes.first(), ((),) * size, (((),) * size,) * size, crash)

    # -- what can happen --------------------------------------------------------------------------

    def actions(self, state: State) -> list[Action]:
        """Everything that can happen."""
        found: list[Action] = []
        for place, p in enumerate(self.scene.nodes):
            node = state.nodes[place]
            found += (Action("do", p, doing) for doing in self.nodes.ready[node])
            for packet in dict.fromkeys(state.inboxes[place]):
                if self.prune and self._is_void(node, packet):
                    return [Action("arrive", p, packet)]
                found.append(Action("arrive", p, packet))
            found += (Action("arrive", p, queue[0]) for queue in state.queues[place] if queue)
        if state.crash == WAITS and self.scene.struck is not None:
            kind = "crash" if self.scene.fate == "crash" else "see"
            found.append(Action(kind, self.scene.struck))
        elif state.crash == STRUCK:
            found.append(Action("see", self.scene.acting))
        return found

    def _is_void(self, node: NodeState, packet: PacketNumber) -> bool:
        """Is it of an era that has ended here, so that it changes nothing, now or later? It may as
        well arrive at once: that loses no outcome."""
        key = node, packet
        if key not in self.voids:
            stack, receive = self.nodes.known[node].stack, self.nodes.packets[packet].receive
            view = stack.view(receive.group)
            past = view is not None and receive.era < view.era + stack.stopped
            self.voids[key] = past and self.nodes.react(node, packet) == (node, ())
        return self.voids[key]

    # -- where it leads ---------------------------------------------------------------------------

    def after(self, state: State, action: Action) -> State:
        """The next state."""
        if action.kind == "crash":
            return self._crash(state, action.p)
        if action.kind == "see":
            assert self.scene.struck is not None
            state = state._replace(crash=SEEN)
            return self.step(state, self.scene.acting, Broken(self.scene.struck))
        assert action.what is not None
        if isinstance(action.what, int):
            state = self._taken(state, action.p, action.what)
        return self.step(state, action.p, action.what)

    def step(self, state: State, p: ProcessId, stimulus: Stimulus) -> State:
        """Something happens to p, and its packets go under way."""
        place = self.place[p]
        after, sent = self.nodes.react(state.nodes[place], stimulus)
        state = state._replace(nodes=_put(state.nodes, place, after))
        if self.nodes.known[after].dead:  # it broke
            return self._emptied(state, place)
        if not sent:
            return state
        inboxes, queues = list(state.inboxes), [list(own) for own in state.queues]
        for number in sent:
            packet = self.nodes.packets[number]
            to = self.place[packet.dst]
            if self.nodes.known[state.nodes[to]].dead:
                continue
            if packet.in_queue:
                queues[to][place] = (*queues[to][place], number)
            else:
                inboxes[to] = tuple(sorted((*inboxes[to], number)))
        return state._replace(inboxes=tuple(inboxes), queues=tuple(map(tuple, queues)))

    def _taken(self, state: State, p: ProcessId, number: PacketNumber) -> State:
        place, packet = self.place[p], self.nodes.packets[number]
        if packet.in_queue:
            queues, sender = state.queues[place], self.place[packet.receive.src]
            queues = _put(queues, sender, queues[sender][1:])
            return state._replace(queues=_put(state.queues, place, queues))
        inbox = state.inboxes[place]
        at = inbox.index(number)
        inbox = inbox[:at] + inbox[at + 1 :]
        return state._replace(inboxes=_put(state.inboxes, place, inbox))

    def _crash(self, state: State, p: ProcessId) -> State:
        place = self.place[p]
        nodes = _put(state.nodes, place, self.nodes.crash(state.nodes[place]))
        return self._emptied(state._replace(nodes=nodes, crash=STRUCK), place)

    def _emptied(self, state: State, place: int) -> State:
        nobody = ((),) * len(self.scene.nodes)
        return state._replace(
            inboxes=_put(state.inboxes, place, ()), queues=_put(state.queues, place, nobody)
        )

    # -- in words ---------------------------------------------------------------------------------

    def words(self, action: Action) -> str:
        """A step as people read it."""
        if action.kind == "crash":
            return f"{action.p} crashes"
        if action.kind == "see":
            return f"{self.scene.acting} believes that {self.scene.struck} is gone"
        if isinstance(action.what, Doing):
            return f"{action.p} does {action.what.what}"
        assert action.what is not None
        receive = self.nodes.packets[action.what].receive
        body = f" {receive.payload.decode()}" if receive.payload else ""
        where = f"g{receive.group} era {receive.era}" if receive.group > 0 else "cluster"
        return f"{receive.src} -> {action.p}  {where}  {receive.header}{body}"


def _put(row: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    return (*row[:place], value, *row[place + 1 :])
