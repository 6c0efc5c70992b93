"""Random runs of the agreement on node views: crashes, restarts, partitions, joins, leaves.

Links are first-in first-out between processes that are connected; a partition, or a crash, breaks
them and loses what is under way. Everybody learns that at another time, or by silence.
"""

from __future__ import annotations

import random
from collections import Counter, deque

from ordercast.membership.agreement import (
    Agreement,
    ClusterOptions,
    Dissolved,
    Installed,
    Out,
    Standing,
)
from ordercast.membership.node_view import NodeEntry


class Node:
    """One process."""

    def __init__(self, run, pid, name, incarnation, voter=True, remembers=False, former=()):
        self.run, self.pid, self.name = run, pid, name
        self.entry = NodeEntry(
            pid, name, incarnation, voter=voter, remembers=remembers, former=former
        )
        self.machine = Agreement(self.entry, run.options)
        self.log = []
        self.up = True

    def send(self, to, header):
        for p in to:
            self.run.transmit(self.pid, p, header)

    def tell(self, news):
        self.log.append(news)
        if isinstance(news, Installed):
            self.run.installed(self, news.view)

    def begin_view(self, view, excluded):
        if view.into >= 0:  # there are no groups that have to end
            self.run.after(1, lambda: self.run.step(self.pid, lambda m, n: m.dissolved(n)))

    def may_leave(self, p):
        return True


class RandomCluster:
    """A run. `electorate`: there is a list of voters, the first hosts."""

    def __init__(self, seed, *, electorate=False, workers=False, partition="primary", machine=None):
        self.rng = rng = random.Random(f"{seed} {electorate} {workers} {partition}")
        self.seed = seed
        self.hosts = rng.randint(3, 7)
        stable = rng.randint(3, min(5, self.hosts))
        self.names = [f"p{h}" for h in range(self.hosts)]
        self.electorate = tuple(self.names[:stable]) if electorate else ()
        self.workers = set(self.names[stable:]) if workers else set()
        self.options = ClusterOptions(
            heartbeat_ms=10, suspect_ms=60, partition=partition, electorate=self.electorate
        )
        self.nodes = {}  # pid -> Node
        self.current = {}  # host -> pid
        self.starts = Counter()
        self.next_pid = 0
        self.links = {}  # (p, q) -> deque
        self.sides = {}  # host -> side
        self.later = []  # (step, act)
        self.views = {}  # id -> pids
        self.successors = {}  # parent id -> id
        self.bad = set()
        self.generation = 0
        self.steps = 0
        self.ticking = {}
        self.machine = machine or Agreement
        for h in range(stable):
            self.start(h, first=h == 0)

    # -- processes --------------------------------------------------------------------------------

    def host(self, pid):
        return int(self.nodes[pid].name[1:])

    def start(self, h, first=False, remembers=False, former=()):
        if self.current.get(h) is not None:
            return
        self.starts[h] += 1
        pid, self.next_pid = self.next_pid, self.next_pid + 1
        name = self.names[h]
        node = Node(self, pid, name, self.starts[h], name not in self.workers, remembers, former)
        self.nodes[pid] = node
        self.current[h] = pid
        for q in self.living():
            if q != pid and self.linked(pid, q):
                self.connect(pid, q)
        if first:
            self.step(pid, lambda m, n: m.found(n))
        else:
            self.look_for_contacts(pid)

    def look_for_contacts(self, pid):
        node = self.nodes[pid]
        if node.up and node.machine.standing is Standing.OUTSIDE:
            contacts = tuple(
                q
                for q in self.living()
                if self.linked(pid, q) and self.nodes[q].machine.standing is not Standing.OUTSIDE
            )
            self.step(pid, lambda m, n: m.seek(n, contacts))
            self.after(40, lambda: self.look_for_contacts(pid))

    def living(self):
        return [p for p in self.current.values() if p is not None]

    def linked(self, p, q):
        return self.sides.get(self.host(p), 0) == self.sides.get(self.host(q), 0)

    def connect(self, p, q):
        self.links[p, q], self.links[q, p] = deque(), deque()
        for a, b in ((p, q), (q, p)):
            self.after(self.rng.randint(0, 4), lambda a=a, b=b: self.connected(a, b))

    def connected(self, a, b):
        if self.nodes[a].up and (a, b) in self.links:
            self.step(a, lambda m, n: m.connect(n, b, self.nodes[b].name))

    def disconnect(self, p, q):
        self.links.pop((p, q), None)
        self.links.pop((q, p), None)
        for a, b in ((p, q), (q, p)):
            if self.rng.random() < 0.7:  # else only silence tells
                self.after(self.rng.randint(0, 20), lambda a=a, b=b: self.broken(a, b))

    def broken(self, a, b):
        if self.nodes[a].up and (a, b) not in self.links:
            self.step(a, lambda m, n: m.broken(n, b))

    def crash(self, h):
        pid = self.current.get(h)
        if pid is None:
            return
        self.nodes[pid].up = False
        self.current[h] = None
        for q in self.living():
            if (pid, q) in self.links:
                self.disconnect(pid, q)

    def retire(self, pid, news):
        h = self.host(pid)
        if self.current.get(h) == pid:
            self.crash(h)
            former = news.former if isinstance(news, Dissolved) else ()
            if not self.nodes[pid].machine.going:
                self.after(20, lambda: self.start(h, remembers=True, former=former))

    def part(self, sides):
        self.sides = sides
        for p in self.living():
            for q in self.living():
                if p < q:
                    if self.linked(p, q) and (p, q) not in self.links:
                        self.connect(p, q)
                    elif not self.linked(p, q) and (p, q) in self.links:
                        self.disconnect(p, q)

    # -- steps ------------------------------------------------------------------------------------

    def after(self, steps, act):
        self.later.append((self.steps + steps, act))

    def transmit(self, p, q, header):
        assert p != q
        if (p, q) in self.links and self.nodes[q].up:
            self.links[p, q].append(header)

    def step(self, pid, act):
        node = self.nodes[pid]
        if not node.up:
            return
        act(node.machine, node)
        node.machine.invariants()
        for news in node.log:
            if isinstance(news, Out | Dissolved):
                self.after(1, lambda news=news: self.retire(pid, news))
        node.log = []

    def installed(self, node, view):
        pids, new = view.pids, view.id not in self.views
        if self.views.setdefault(view.id, (pids, view.voters)) != (pids, view.voters):
            self.bad.add("two views of one id")
        if self.options.partition == "primary":
            key = (view.parent, view.id.generation)
            if self.successors.setdefault(key, view.id) != view.id:
                self.bad.add("two successors of one view")
            if new and view.id.generation < self.generation:
                self.bad.add("a side goes on that was recovered without")
            self.generation = max(self.generation, view.id.generation)

    def tick(self, pid):
        self.step(pid, lambda m, n: m.tick(n))

    def turn(self):
        """One unit of time."""
        self.steps += 1
        due = [act for at, act in self.later if at <= self.steps]
        self.later = [(at, act) for at, act in self.later if at > self.steps]
        for act in due:
            act()
        for pid in self.living():
            if (self.steps + pid * 3) % 10 == 0:
                self.tick(pid)
        for _ in range(30):
            open_links = [k for k, q in self.links.items() if q and self.nodes[k[1]].up]
            if not open_links:
                break
            key = self.rng.choice(open_links)
            header = self.links[key].popleft()
            self.step(key[1], lambda m, n, key=key, header=header: m.receive(n, key[0], header))

    def run(self, turns=None):
        rng = self.rng
        for _ in range(turns or rng.choice((300, 600, 1200))):
            self.turn()
            if rng.random() < 0.02:
                self.fault()
        self.sides = {}
        self.part({})
        for h in range(self.hosts):
            if self.current.get(h) is None and not self.kept_down(h):
                self.start(h)
        for _ in range(700):
            self.turn()
        return self

    def kept_down(self, h):
        return False

    def fault(self):
        rng = self.rng
        h = rng.randrange(self.hosts)
        kind = rng.random()
        if kind < 0.3:
            for host in rng.sample(range(self.hosts), rng.choice((1, 1, 1, 2, self.hosts - 1))):
                self.crash(host)
        elif kind < 0.6:
            self.start(h)
        elif kind < 0.75:
            sides = rng.choice((1, 2, 2, 3))
            self.part({i: rng.randrange(sides) for i in range(self.hosts)})
        elif kind < 0.85:
            self.part({})
        elif self.current.get(h) is not None and len(self.living()) > 1:
            pid = self.current[h]
            if self.nodes[pid].machine.standing is Standing.IN:
                self.step(pid, lambda m, n: m.leave(n))

    # -- the end ----------------------------------------------------------------------------------

    def judge(self):
        up = [self.nodes[p] for p in self.living()]
        primary = [n for n in up if n.machine.standing is Standing.IN]
        ids = {n.machine.view.id for n in primary}
        if self.options.partition == "primary":
            if len(ids) > 1:
                self.bad.add("two views at the end")
            if self.is_recoverable() and len(primary) < len(up):
                self.bad.add("somebody never came in")
        elif primary and (len(ids) != 1 or len(primary) < len(up)):
            self.bad.add("sides did not merge")
        return self.bad

    def is_recoverable(self):
        """Does a node that lives remember a view, with a majority of it or all its electorate?"""
        machines = [self.nodes[p].machine for p in self.living()]
        seen = [m for m in machines if m.view is not None and m.standing is not Standing.OUT]
        if not seen:
            return False
        newest = max(self.views)
        _, voters = self.views[newest]
        living = set(self.living())
        here = sum(1 for p in voters if p in living)
        if 2 * here > len(voters):
            return not any(m.accepted for m in seen) or True
        return bool(self.electorate) and any(m.view.id == newest for m in seen)
