"""Processes, links and a judge for the agreement on node views.

Links are first-in first-out between processes that are connected. A partition, or a crash, breaks
them and loses what is under way; everybody learns that at another time, or by silence alone.
"""

from __future__ import annotations

from collections import Counter, deque

from ordercast.errors import PeerError
from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_table import Standing
from ordercast.membership.news import Dissolved, Installed, Out, Split
from ordercast.membership.node_view import NodeEntry, ViewId, won
from ordercast.membership.options import ClusterOptions

PHANTOM = 1_000_000  # process ids from here on belong to applicants that never connect
INVOLVED = (Standing.IN, Standing.CUT_OFF)
TIMEOUT_TICKS = 6


class Node:
    """One process."""

    def __init__(self, run, pid, name, incarnation, voter=True, remembers=False, former=()):
        self.run, self.pid, self.name = run, pid, name
        self.entry = NodeEntry(
            pid, name, incarnation, voter=voter, remembers=remembers, former=former
        )
        self.machine = run.machine(self.entry, run.options)
        self.log = []
        self.up = True

    def send(self, to, header):
        for p in to:
            self.run.transmit(self.pid, p, header)

    def tell(self, news):
        self.log.append(news)
        if isinstance(news, Installed):
            self.run.installed(self, news.view)
        elif isinstance(news, Split):
            self.run.splits.add(self.name)
            if not self.run.spoken:
                self.run.bad.add("split, and no operator has spoken")

    def begin_view(self, view, excluded):
        if view.into >= 0:  # there are no groups that have to end
            self.run.after(1, lambda: self.run.step(self.pid, lambda m, n: m.sides.dissolved(n)))

    def may_leave(self, p):
        return True

    def blame(self, p, why):
        self.run.blamed[why] += 1


class SimulatedCluster:
    """Hosts on which processes start, with all that happens between them."""

    def __init__(
        self, names, rng, *, electorate=(), workers=(), partition="primary", machine=Agreement
    ):
        self.rng, self.machine = rng, machine
        self.names, self.hosts = list(names), len(names)
        self.electorate, self.workers = tuple(electorate), set(workers)
        self.options = ClusterOptions(
            heartbeat_ms=10,
            suspect_ms=10 * TIMEOUT_TICKS,
            partition=partition,
            electorate=self.electorate,
        )
        self.nodes = {}  # pid -> Node
        self.current = {}  # host -> pid
        self.starts = Counter()
        self.next_pid = 0
        self.links = {}  # (p, q) -> deque
        self.held = set()  # (host, host): packets wait
        self.paused = {}  # host -> step at which it goes on
        self.sides = {}  # host -> side
        self.later = []  # (step, act)
        self.views = {}  # id -> view
        self.successors = {}  # (parent id, generation, fork) -> id
        self.spoken = False  # an operator has said something
        self.splits = set()  # names of nodes that were told
        self.bad = set()
        self.blamed = Counter()  # reasons of PeerErrors
        self.steps = 0

    # -- processes --------------------------------------------------------------------------------

    def host(self, pid):
        return self.names.index(self.nodes[pid].name)

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

    def involved(self):
        return [p for p in self.living() if self.nodes[p].machine.standing in INVOLVED]

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
        self.paused.pop(h, None)
        for q in self.living():
            if (pid, q) in self.links:
                self.disconnect(pid, q)

    def retire(self, pid, news):
        h = self.host(pid)
        if self.current.get(h) == pid:
            self.crash(h)
            former = news.former if isinstance(news, Dissolved) else ()
            if not self.nodes[pid].machine.departure.going:
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
        try:
            act(node.machine, node)
        except PeerError as fault:
            self.blamed[str(fault)] += 1
        node.machine.invariants()
        for news in node.log:
            if isinstance(news, Out | Dissolved):
                self.after(1, lambda news=news: self.retire(pid, news))
        node.log = []

    def tick(self, pid):
        self.step(pid, lambda m, n: m.tick(n))

    def is_paused(self, pid):
        return self.paused.get(self.host(pid), 0) > self.steps

    def is_open(self, p, q):
        return (self.host(p), self.host(q)) not in self.held and not self.is_paused(q)

    def turn(self):
        """One unit of time: ten are a tick."""
        self.steps += 1
        due = [act for at, act in self.later if at <= self.steps]
        self.later = [(at, act) for at, act in self.later if at > self.steps]
        for act in due:
            act()
        for pid in self.living():
            if (self.steps + pid * 3) % 10 == 0 and not self.is_paused(pid):
                self.tick(pid)
        for _ in range(30):
            keys = [k for k, queue in self.links.items() if queue]
            keys = [k for k in keys if self.nodes[k[1]].up and self.is_open(*k)]
            if not keys:
                break
            p, q = self.rng.choice(keys)
            self.hand(p, q, self.links[p, q].popleft())

    def hand(self, p, q, header):
        """A packet arrives. Honest nodes are never blamed."""
        before = sum(self.blamed.values())
        self.step(q, lambda m, n: m.receive(n, p, header))
        if sum(self.blamed.values()) > before and not self.is_forged(p, header):
            self.bad.add(f"{type(header).__name__} of an honest node was blamed")

    def is_forged(self, p, header):
        return False

    def heal(self, turns=3000):
        """All faults end, everybody is there: so long it may take until all are in one view."""
        self.held, self.paused = set(), {}
        self.part({})
        for turn in range(turns):
            if turn % 50 == 0:
                for h in range(self.hosts):
                    self.start(h)
            self.turn()
            if turn % 20 == 19 and self.is_settled():
                break
        return self

    def is_settled(self):
        machines = [self.nodes[p].machine for p in self.living()]
        if len(machines) < self.hosts or any(m.standing is not Standing.IN for m in machines):
            return False
        return len({m.view.id for m in machines}) == 1

    # -- what must hold in every step -------------------------------------------------------------

    def installed(self, node, view):
        known = self.views.setdefault(view.id, view)
        if known != view:
            self.bad.add("two views of one id")
        if any(pid >= PHANTOM for pid in view.pids):
            self.bad.add("a phantom is in a view")
        if known is view and self.options.partition == "primary":
            self.check_succession(view)

    def check_succession(self, view):
        id = view.id
        key = (view.parent, id.generation, id.fork if self.spoken else 0)
        if self.successors.setdefault(key, id) != id:
            self.bad.add("two successors of one view")
        if not self.spoken and id.generation < max(self.views).generation:
            self.bad.add("a side goes on that was recovered without")
        before = self.views.get(view.parent)
        if before is None:
            return
        if id.generation == before.id.generation:
            if not won([p for p in view.voters if p in before.pids], view.voters):
                self.bad.add("newcomers have the majority")
        elif not self.spoken:
            self.check_recovery(before, view)

    def check_recovery(self, before, view):
        """All of the electorate are there; and nobody who lives, and votes, has gone on from where
        the cluster was recovered."""
        names = {node.name for node in view.nodes}
        if not self.electorate or not names.issuperset(self.electorate):
            self.bad.add("recovered without all of an electorate, and no operator has spoken")
        for p in self.living():
            machine = self.nodes[p].machine
            if machine.view is None or machine.standing is Standing.OUT:
                continue
            ahead = ViewId() < before.id < machine.view.id < view.id
            if ahead and p in machine.view.voters:
                self.bad.add("recovered without somebody who lives and has gone on")
        if not any(p in before.voters for p in view.pids):
            self.bad.add("recovered by nobody who remembers")

    # -- the end ----------------------------------------------------------------------------------

    def judge(self):
        up = [self.nodes[p] for p in self.living()]
        primary = [n for n in up if n.machine.standing is Standing.IN]
        ids = {n.machine.view.id for n in primary}
        if self.options.partition == "primary":
            if self.spoken and all(self.splits & self.names_in(id) for id in ids) and len(ids) > 1:
                return self.bad  # a wrong word of an operator, and both sides say so
            if len(ids) > 1:
                self.bad.add("two views at the end")
            if self.is_recoverable() and not self.is_settled():
                self.bad.add("somebody never came in")
        elif primary and not self.is_settled():
            self.bad.add("sides did not merge")
        return self.bad

    def names_in(self, id):
        return {node.name for node in self.views[id].nodes}

    def is_recoverable(self):
        """Do those who live win the newest view that one of them knows, and each that was accepted
        after it? Or is there an electorate, of which everybody is here by now, and one that votes
        remembers?"""
        machines = [self.nodes[p].machine for p in self.living()]
        seen = [m for m in machines if m.view is not None and m.standing in INVOLVED]
        if not seen:
            return False
        living = set(self.living())
        newest = max((m.view for m in seen), key=lambda view: view.id)
        open_views = [newest]
        open_views += [
            v for m in seen if m.acceptor.accepted and (v := m.acceptor.accepted[1]).id > newest.id
        ]
        if all(won(living, view.voters) for view in open_views):
            return True
        return bool(self.electorate) and any(
            m.view.id == newest.id and m.me in m.view.voters for m in seen
        )
