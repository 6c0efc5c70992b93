"""python -m tests.views.explorer SCENE [limit]: every schedule of a small scene.

Three nodes, two groups, a handful of events that may happen at any time, among packets that may
arrive in any order that links allow. States that were met before are not looked at again.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter, deque

from ordercast.core.events import Multicast, Timer
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.membership.node_view import NodeEntry
from ordercast.views.changes import Changes
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Row, WantIn, WantMoved
from tests.views.judge import judge
from tests.views.oracle_cluster import ORDERS, OracleCluster, OracleNode, node_view
from tests.views.watch import Watch

SCENES = {  # name: (order, rows {group: (members, leader)}, events)
    "crash": ("hybrid", {1: ((0, 1), 2), 2: ((1, 0), 2)},
              [("send", 1, 1), ("send", 1, 2), ("crash", 2)]),
    "needs": ("hybrid", {1: ((1,), 2), 2: ((0, 1), 2)},
              [("send", 1, 1), ("send", 1, 2), ("crash", 2)]),
    "leave": ("hybrid", {1: ((0, 1), 2), 2: ((0, 1), 2)},
              [("send", 1, 1), ("out", 1, 1), ("send", 0, 2)]),
    "join": ("causal-total", {1: ((0, 1), 0), 2: ((1,), 2)},
             [("send", 1, 1), ("in", 0, 2), ("send", 1, 2)]),
    "move": ("total", {1: ((0, 1), 2), 2: ((0, 1), 2)},
             [("send", 0, 1), ("move", 1, 0), ("send", 1, 2)]),
    "guest": ("hybrid", {1: ((0, 1), 1), 2: ((0, 1), 1)},
              [("send", 2, 1), ("send", 2, 2), ("crash", 1)]),
    "coordinator": ("total", {1: ((0, 1), 1), 2: ((1, 2), 2)},
                    [("out", 2, 2), ("send", 1, 2), ("crash", 0)]),
    "wish": ("total", {1: ((0, 1), 1), 2: ((1, 2), 2)},
             [("out", 2, 2), ("in", 2, 2), ("crash", 0)]),
}  # fmt: skip


def twin(node):
    """An independent copy of a node."""
    copy = object.__new__(OracleNode)
    copy.__dict__.update(node.__dict__)
    copy.service, copy.changes = node.service.copy(), node.changes.copy()
    copy.out = copy.service.out = Output()
    copy.sent, copy.log, copy.timers = [], list(node.log), list(node.timers)
    copy.untaken, copy.now = Counter(node.untaken), dict(node.now)
    copy.count = Counter(node.count)
    return copy


class Scene(OracleCluster):
    """A cluster whose next step is chosen from outside."""

    def __init__(self, name, page=None):
        self.order, rows, self.events = SCENES[name]
        self.k, self.at_once, self.wished, self.lossy, self.consumes = 0, 1, True, False, False
        self.crashes = self.sends = self.wishes = self.steps = 0
        self.rng, self.reply, self.flags = random.Random(0), 0, frozenset()
        self.start = {
            g: Row(GroupEntry(g, "AB"[g - 1], self.order, "seq", 7), 1, 1, members, (), leader)
            for g, (members, leader) in rows.items()
        }
        self.entries = {i: NodeEntry(i, f"p{i}", 1) for i in range(3)}
        everybody = tuple(self.entries.values())
        made = (page or ORDERS[self.order], Changes, Options(lossy=False, ack_every=4), None)
        self.nodes = {i: OracleNode(i, self.start, *made, everybody) for i in range(3)}
        self.channels, self.notices = {}, {i: deque() for i in range(3)}
        self.views, self.living, self.dead_at = [node_view(0, everybody)], {0, 1, 2}, {}
        self.seen = {i: len(self.nodes[i].log) for i in range(3)}
        self.packets, self.wanting, self.watch = Counter(), {}, Watch()
        for i in range(3):
            self.collect(i)

    def copy(self):
        other = object.__new__(Scene)
        other.__dict__.update(self.__dict__)
        other.nodes = {p: twin(node) for p, node in self.nodes.items()}
        other.channels = {key: deque(q) for key, q in self.channels.items() if q}
        other.notices = {p: deque(q) for p, q in self.notices.items()}
        other.views, other.living, other.dead_at = (
            list(self.views), set(self.living), dict(self.dead_at),
        )  # fmt: skip
        other.events, other.wanting = list(self.events), dict(self.wanting)
        other.seen, other.watch = dict(self.seen), Watch()
        other.watch.frames = dict(self.watch.frames)
        return other

    def key(self):
        nodes = tuple(
            (node.service.fingerprint(), node.changes.fingerprint(), repr(node.log), node.timers)
            for p, node in sorted(self.nodes.items())
            if p in self.living
        )
        links = sorted((key, repr(list(q))) for key, q in self.channels.items() if q)
        return hash(repr((nodes, links, self.notices, self.events)))

    # -- what can happen next ----------------------------------------------------------------------

    def choices(self):
        found = [("packet", *key) for key in self.open_channels()]
        found += [("notice", p) for p in sorted(self.living) if self.notices[p]]
        if self.events and self.events[0][0] == "crash":
            found += [(*self.events[0], kept) for kept in self.reached_by(self.events[0][1])]
        elif self.events:
            found.append(self.events[0])
        if not found:  # timers matter when nothing else moves
            found = [("ring", p) for p in sorted(self.living) if self.nodes[p].timers][:1]
        return found

    def reached_by(self, x):
        """Whom the packets of a node may still reach that crashes: any of the others."""
        a, b = (p for p in self.nodes if p != x)
        return (), (a,), (b,), (a, b)

    def take(self, choice):
        kind, *what = choice
        if kind == "packet":
            self.receive(*what)
        elif kind == "notice":
            self.take_notice(*what)
        elif kind == "ring":
            g, name = self.nodes[what[0]].timers.pop(0)
            self.step(what[0], lambda node: node.service.handle(Timer(g, name)))
        else:
            self.events = self.events[1:]
            self.happen(kind, *what)

    def happen(self, kind, p, g, *_):
        node = self.nodes[p]
        if kind == "crash":
            self.lose(p, kept=g)
        elif p not in self.living:
            return
        elif kind == "send":
            node.count[g] += 1
            node.log.append(("send", (p, g, node.count[g]), g))
            self.seen[p] = len(node.log)
            self.step(p, lambda n: n.service.handle(Multicast(g, b"m")))
        elif kind == "out":
            self.leave(p, g)
        elif kind == "in":
            self.wanting[p, g] = "join"
            want = WantIn(self.start[g].entry, "member")
            self.step(p, lambda n: n.changes.want_in(n, want))
        else:
            self.step(1, lambda n: n.changes.ask_coordinator(n, WantMoved(p, g)))

    def lose(self, x, *, kept):
        """A node crashes; what it has sent arrives, or does not."""
        self.living.discard(x)
        self.dead_at[x] = 1
        for (a, b, _), queue in self.channels.items():
            if b == x or (a == x and b not in kept):
                queue.clear()
        nodes = (n for n in self.views[-1].nodes if n.pid != x)
        self.views.append(node_view(len(self.views), nodes))
        for p in self.living:
            self.notices[p].append(len(self.views) - 1)


def explore(name, limit, page=None):
    """(states, ends, whether all were looked at); the first broken promise is raised."""
    start = Scene(name, page)
    seen, todo, ends = {start.key()}, [(start, ())], 0
    while todo and len(seen) < limit:
        scene, path = todo.pop()
        choices = scene.choices()
        if not choices:
            ends += 1
            broken = judge(scene)
            assert not broken, f"{sorted(broken)}: {path}"
        for i, choice in enumerate(choices):
            after = scene if i == len(choices) - 1 else scene.copy()
            try:
                after.take(choice)
            except AssertionError as error:
                raise AssertionError(f"{error}: {(*path, choice)}") from error
            key = after.key()
            if key not in seen:
                seen.add(key)
                todo.append((after, (*path, choice)))
    return len(seen), ends, not todo


def main(name, limit=100_000):
    began = time.process_time()
    states, ends, complete = explore(name, int(limit))
    print(f"{name}: {states} states, {ends} ends, complete: {complete}, "
          f"{time.process_time() - began:.0f} s of CPU", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
