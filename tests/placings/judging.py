"""The end of a way: nothing can happen any more but timers. Is what was delivered right?

Every survivor says one more message in each of its groups. If something that survivors said is
missing then, timers fire, in a few rounds: what is not there after that is blocked for ever. The
oracle of traces judges the logs by what the protocol promises.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.core.events import Multicast, Timer
from ordercast.core.ids import GroupId, ProcessId
from ordercast.membership.standing import Ask
from ordercast.trace.oracle import judge
from ordercast.trace.schema import Event as Row
from placings.nodes import Entry, Node
from placings.scene import Scene
from placings.space import Space, State

ROUNDS = 6  # of timers
MOST_STEPS = 5_000  # until nothing is under way
LAST = "last"  # with this the last messages begin
ALSO = ("views", "vsync", "wellformed")

Log = tuple[Entry, ...]
Outcome = tuple[Log, ...]


class Judge:
    """Judges ends; equal outcomes once."""

    def __init__(self, space: Space) -> None:
        self.space, self.scene = space, space.scene
        self.expected = (*self.scene.protocol.declaration.promises, *ALSO)
        self.verdicts: dict[Outcome, str] = {}
        self.rescued = 0  # ends at which timers were needed

    def complaint(self, end: State) -> str:
        """The first broken promise; nothing if all are kept."""
        rest = self._last_words(end)
        for node in self._living(rest):
            for g in self._asked(node):
                if not _is_in(node, g):
                    return f"join: {node.p} is never let into group {g}"
        outcome = tuple(self.space.nodes.known[number].log for number in rest.nodes)
        if outcome not in self.verdicts:
            self.verdicts[outcome] = self._look(outcome)
        return self.verdicts[outcome]

    # -- until nothing is missing -----------------------------------------------------------------

    def _last_words(self, state: State) -> State:
        for node in self._living(state):
            for g in _sends_to(node):
                text = f"{LAST} of {node.p} in {g}"
                state = self.space.step(state, node.p, Multicast(g, text.encode()))
        state = self._carry(state)
        for round_ in range(ROUNDS):
            if not self._is_something_missing(state):
                break
            self.rescued += round_ == 0
            for p in [node.p for node in self._living(state)]:
                node = self.space.nodes.known[state.nodes[self.space.place[p]]]
                for g, name in sorted(node.timers):
                    state = self.space.step(state, p, Timer(g, name))
            state = self._carry(state)
        return state

    def _carry(self, state: State) -> State:
        for _ in range(MOST_STEPS):
            arrivals = [a for a in self.space.actions(state) if a.kind in ("arrive", "do")]
            if not arrivals:
                return state
            state = self.space.after(state, arrivals[0])
        raise AssertionError("it never comes to rest")

    def _is_something_missing(self, state: State) -> bool:
        living = self._living(state)
        said = [e for node in living for e in node.log if e.kind == "send"]
        return any(self._lacks(node, said) for node in living)

    def _lacks(self, node: Node, said: list[Entry]) -> bool:
        """Its own messages, and the last ones of all; and to be let in."""
        here = {e.what for e in node.log if e.kind == "deliver"}
        due = (e for e in said if e.sender == node.p or e.what.startswith(LAST))
        lacking = any(e.what not in here for e in due if _is_member(node, e.group))
        return lacking or not all(_is_in(node, g) for g in self._asked(node))

    def _asked(self, node: Node) -> list[GroupId]:
        doings = self.space.nodes.doings[node.p]
        return [d.what.group.gid for d in doings if isinstance(d.what, Ask)]

    def _living(self, state: State) -> list[Node]:
        nodes = (self.space.nodes.known[number] for number in state.nodes)
        return [node for node in nodes if not node.dead and node.p != self.scene.struck]

    # -- the verdict ------------------------------------------------------------------------------

    def _look(self, outcome: Outcome) -> str:
        for p, log in zip(self.scene.nodes, outcome, strict=True):
            for entry in log:
                if entry.kind == "error" or (entry.kind == "fault" and p != self.scene.struck):
                    return f"{entry.kind}: {p} says of {entry.sender}: {entry.what}"
        found = judge(list(_rows(self.scene, outcome)), only=self.expected)
        for name, judgement in found.items():
            if judgement.verdict not in ("ok", "n/a"):
                said = [v.sentence for v in judgement.violations] or list(judgement.doubts)
                return f"{name}: {said[0]}"
        return ""


def _is_member(node: Node, g: GroupId) -> bool:
    view = node.stack.view(g)
    return view is not None and node.p in view.members


def _is_in(node: Node, g: GroupId) -> bool:
    view = node.stack.view(g)
    return view is not None and node.p in view.senders


def _sends_to(node: Node) -> Iterator[GroupId]:
    return (g for g in sorted(node.stack.protocols) if _is_in(node, g))


def _rows(scene: Scene, outcome: Outcome) -> Iterator[Row]:
    """The outcome as a trace. Who was taken for dead has crashed, as far as others can tell."""
    for p, log in zip(scene.nodes, outcome, strict=True):
        entries = [e for e in log if e.kind in ("send", "deliver", "view")]
        for index, e in enumerate(entries):
            yield _row(p, index, e)
        yield Row(f"p{p}", len(entries), "crash" if p == scene.struck else "end")


def _row(p: ProcessId, index: int, e: Entry) -> Row:
    who, group = f"p{p}", f"g{e.group}"
    if e.kind == "view":
        members = tuple(f"p{q}" for q in e.members)
        return Row(who, index, "view", group=group, view=e.view, members=members)
    sender = f"p{e.sender}" if e.kind == "deliver" else None
    return Row(who, index, e.kind, e.what, group, sender=sender)
