"""Small clusters whose node views come from an oracle: the machines of changes and of the
sequencing service alone, under random schedules, with the invariants checked after every step.

Every link is first-in first-out for each of its two channels, data and cluster. A crash loses the
tail of what a node has sent, and every node learns of it at another time.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from ordercast.core.changing import NextEra, NumbersEnd
from ordercast.core.events import Consumed, Multicast, Receive, Timer, View
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.views.changes import Changes
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Change, Next, Row, WantDrained, WantIn, WantMoved, WantRefounded
from ordercast.views.states import Lead
from tests.views.watch import Watch

ORDERS: dict[str, type[OrderingProtocol]] = {
    "total": Sequencing,
    "hybrid": SequencingHybrid,
    "causal-total": SequencingCausal,
    "global-total": SequencingGlobal,
}
NAMES = "ABCDE"
FLAGS = frozenset(("consumes", "apart", "lossy", "arrivals", "restless", "storm"))
"""applications consume; bodies travel apart; the network loses; nodes come, groups are founded;
nodes change their minds; many wishes and slow links"""


class OracleNode:
    """One process: the machine of one order, and its part in changes."""

    def __init__(self, pid, rows, page, changes, options, durability, nodes):
        self.me = pid
        self.out = Output()
        self.service = page(pid, options)
        self.service.out = self.out
        self.kind = page
        self.changes = changes(pid)
        self.sent = []  # (to, channel, packet)
        self.log = []
        self.timers = []
        self.untaken = Counter()
        self.now = {}  # group -> era of the view that the application is in
        self.count = Counter()
        self.replies = 0
        for g in range(1, len(NAMES) + 1):
            if durability is not None:
                self.service.count_holders(g, durability)
        if nodes:  # it was there from the beginning
            view = node_view(0, nodes)
            self.changes.term, self.changes.nodes = view.term, {n.pid: n for n in nodes}
            self.changes.coordinator = view.coordinator
            for row in rows.values():
                self.changes.directory.put(row)
                if pid in row.members:
                    self.changes.wants[row.entry.gid] = WantIn(row.entry, "member")
            if self.changes.leads:
                self.changes.target.begin(self.changes.directory, nodes, {}, self.page)
            nexts = tuple(Next(row, NumbersEnd(0, pid)) for row in rows.values())
            self.changes.newest = Change(1, (1, 0), nexts, tuple(n.pid for n in nodes))
            self.changes.done = 1  # the first change founded all groups
            self.begin(1, [NextEra(self.view_of(x.row), x.end) for x in nexts])
        self.carry_out()

    # what changes ask for
    def page(self, protocol):
        return self.kind

    def machine(self, g, entry):
        return self.service

    def mistaken(self, entry):
        raise AssertionError("every group has the same number at all nodes")

    def machines(self):
        return (self.service,)

    def view_of(self, row: Row, end=None) -> View:
        return View(row.entry.gid, row.number, row.members, row.leader, row.era)

    def begin(self, number: int, nexts: Sequence[NextEra]) -> None:
        self.service.change(number, nexts)

    def send(self, to, header) -> None:
        for p in to:
            self.sent.append((p, "cluster", header))

    def forget(self, forgotten) -> None:
        assert not forgotten, "there are few groups"

    def blame(self, p, why) -> None:
        raise PeerError(f"{p}: {why}")

    def carry_out(self) -> None:
        out = self.out
        for to, g, era, header, payload in out.transmits:
            for p in to:
                assert p != self.me, "nobody sends to itself"
                self.sent.append((p, "data", Receive(self.me, g, era, header, payload)))
        eras = deque(out.eras)
        for count in range(len(out.deliveries) + 1):
            while eras and eras[0][0] <= count:
                self.begin_era(eras.popleft()[1])
            item = out.deliveries[count] if count < len(out.deliveries) else None
            if item is not None and not isinstance(item, View):
                g, origin, n, N, _ = item
                self.log.append(("deliver", (origin, g, n), g, (self.now.get(g, -1), N)))
                self.untaken[g] += 1
        self.timers.extend((g, name) for g, name, _ in out.timers)
        assert not out.faults, f"an honest node is at fault: {out.faults}"
        out.clear()

    def begin_era(self, view: View) -> None:
        inside = self.me in view.members
        self.log.append(("view" if inside else "left", view.group, view.era, view.members))
        self.now[view.group] = view.era

    def granted(self, kind, g, p) -> bool:
        row = self.changes.directory.rows.get(g)
        if row is None:
            return False
        if kind == "join":
            return p in row.members
        return p not in row.members if kind == "leave" else row.leader == p


def node_view(number: int, nodes: Iterable[NodeEntry], term: int | None = None) -> NodeView:
    nodes = tuple(nodes)
    pids = tuple(n.pid for n in nodes)
    return NodeView(ViewId(0, 0, number + 1), nodes, pids, number + 1 if term is None else term)


class OracleCluster:
    """A random run."""

    def __init__(self, seed, order, k=0, crashes=1, flags=(), page=None, changes=Changes):
        self.flags = frozenset(flags)
        assert self.flags <= FLAGS, f"no such flag: {self.flags - FLAGS}"
        consumes, apart, lossy = (x in self.flags for x in ("consumes", "apart", "lossy"))
        self.rng = rng = random.Random(f"{seed}/{order}/{k}/{crashes}")
        n = rng.randint(3, 6) if k < 2 else rng.randint(k + 2, k + 4)
        self.order, self.k, self.seed = order, k, seed
        page = page or ORDERS[order]
        self.groups = list(range(1, rng.randint(2, 4) + 1))
        members = {
            g: tuple(rng.sample(range(n), rng.randint(1 if rng.random() < 0.15 else 2, n)))
            for g in self.groups
        }
        hosts = {g: rng.randrange(n) for g in self.groups}
        if rng.random() < 0.4:
            hosts = dict.fromkeys(self.groups, rng.randrange(n))
        for _ in self.groups if page.together != "none" else ():
            for g in self.groups:
                for h in self.groups:
                    if len(set(members[g]) & set(members[h])) >= page.common:
                        hosts[g] = hosts[h] = min(hosts[g], hosts[h])
        for g in self.groups:
            if members[g] == (hosts[g],) and page.copies_frames:
                hosts[g] = (hosts[g] + 1) % n
        entries = {g: GroupEntry(g, NAMES[g - 1], order, "seq", 7) for g in self.groups}
        self.start = {g: Row(entries[g], 1, 1, members[g], (), hosts[g]) for g in self.groups}
        self.entries = {i: NodeEntry(i, f"p{i}", 1) for i in range(n)}
        self.lossy = lossy
        options = Options(lossy=lossy, driver_consumes=consumes, bodies_apart=apart, ack_every=4)
        everybody = tuple(self.entries.values())
        self.consumes = consumes
        self.made = (page, changes, options, k or None)
        self.nodes = {i: OracleNode(i, self.start, *self.made, everybody) for i in range(n)}
        self.channels = {}
        self.notices = {i: deque() for i in range(n)}
        self.views = [node_view(0, everybody)]
        self.living, self.dead_at = set(range(n)), {}
        self.seen = dict.fromkeys(range(n), 0)
        for i in range(n):
            self.seen[i] = len(self.nodes[i].log)
        self.sends, self.wishes = rng.randint(8, 30), rng.choice([0, 0, 1, 2, 4, 10])
        self.wished = self.wishes > 0
        self.crashes = rng.randint(0, crashes)
        self.arrivals = rng.randint(0, 3) if "arrivals" in self.flags else 0
        self.unfounded = [g for g in range(1, 6) if g not in self.groups]
        self.at_once = crashes if k > 1 else 1
        self.burst, self.reply = rng.choice([0.0, 0.3, 0.7]), rng.choice([0, 0.1, 0.3])
        self.guest = rng.choice([0, 0.2, 0.5])
        self.pace = rng.choice([0.05, 0.15, 0.4])
        share = rng.choice([0, 0.15, 0.4])
        self.slow = {(a, b) for a in range(n) for b in range(n) if rng.random() < share}
        if "storm" in self.flags:
            self.wishes, self.sends = rng.randint(6, 16), rng.randint(20, 50)
            self.wished, self.pace = True, rng.choice([0.2, 0.4])
        self.packets, self.steps = Counter(), 0
        self.watch = Watch()
        self.wanting = {}
        for i in range(n):
            self.collect(i)

    # -- one step at one node ---------------------------------------------------------------------

    def collect(self, p):
        node = self.nodes[p]
        node.carry_out()
        for to, channel, packet in node.sent:
            kind = type(packet.header if channel == "data" else packet).__name__
            self.packets[kind] += 1
            if to in self.living:
                self.channels.setdefault((p, to, channel), deque()).append(packet)
        node.sent = []

    def step(self, p, act):
        node = self.nodes[p]
        done = node.changes.done
        act(node)
        node.changes.look_whether_ready(node)
        self.collect(p)
        node.service.invariants()
        node.changes.invariants()
        self.watch.look(self, node)
        new = node.log[self.seen[p] :]
        self.seen[p] = len(node.log)
        rng = self.rng
        just_led = node.changes.done > done and node.changes.leads
        may_crash = self.crashes > 0 and len(self.living) > 2
        if just_led and may_crash and rng.random() < 0.15 and self.has_crashes_left():
            self.crashes -= 1
            self.crash(p, rng.random() < 0.5)  # with INSTALL on its lips
            return
        for entry in new:
            if entry[0] == "deliver" and self.sends > 0 and rng.random() < self.reply:
                self.sends -= 1
                self.multicast(p)

    def has_crashes_left(self):
        return len(self.dead_at) < self.at_once or not self.dead_at

    def multicast(self, p):
        node, rng = self.nodes[p], self.rng
        rows = node.changes.directory.rows
        if not rows:
            return  # it is not in the cluster yet
        mine = [g for g, row in rows.items() if p in row.members]
        guest = not mine or rng.random() < self.guest
        g = rng.choice(list(rows)) if guest else rng.choice(mine)
        node.count[g] += 1
        node.log.append(("send", (p, g, node.count[g]), g))
        self.seen[p] = len(node.log)
        self.step(p, lambda node: node.service.handle(Multicast(g, b"m")))

    def crash(self, x, all_lost=False):
        rng = self.rng
        self.living.discard(x)
        self.dead_at[x] = self.steps
        all_lost = all_lost or rng.random() < 0.2
        for (a, b, _), queue in self.channels.items():
            if b == x:
                queue.clear()
            if a == x:
                keep = 0 if all_lost or rng.random() < 0.3 else rng.randint(0, len(queue))
                while len(queue) > keep:
                    queue.pop()
        self.views.append(
            node_view(len(self.views), (n for n in self.views[-1].nodes if n.pid != x))
        )
        for p in self.living:
            self.notices[p].append(len(self.views) - 1)

    def arrive(self):
        """A new node, or the next life of one that crashed."""
        pid, before = len(self.nodes), self.views[-1]
        lost = [self.entries[x] for x in self.dead_at if self.rng.random() < 0.5]
        entry = NodeEntry(pid, f"p{pid}", 1)
        if lost and not any(n.name == lost[0].name for n in before.nodes):
            entry = NodeEntry(pid, lost[0].name, lost[0].incarnation + 1)
        self.entries[pid] = entry
        self.nodes[pid] = OracleNode(pid, {}, *self.made, ())
        self.living.add(pid)
        self.seen[pid], self.notices[pid] = 0, deque()
        view = node_view(len(self.views), (*before.nodes, entry), before.term)
        self.views.append(view)
        for p in self.living:
            self.notices[p].append(len(self.views) - 1)

    def take_notice(self, p):
        view = self.views[self.notices[p].popleft()]
        gone = [n for n in self.nodes[p].changes.nodes.values() if n.pid not in view.pids]

        def act(node):
            node.changes.begin_view(node, view, gone)
            for q in gone:
                node.service.gone_for_good(q.pid)

        self.step(p, act)

    def alive_for(self, p):
        return self.nodes[p].changes.nodes

    def settled(self):
        up = [self.nodes[p] for p in self.living]
        dead = set(self.dead_at)
        return (
            not any(self.notices[p] for p in self.living)
            and all(x.changes.lead is Lead.IDLE for x in up)
            and len({x.changes.done for x in up}) == 1
            and not any(
                dead & set(r.concerned) for x in up for r in x.changes.directory.rows.values()
            )
        )

    # -- what happens -----------------------------------------------------------------------------

    def act(self):
        rng = self.rng
        r, p = rng.random(), rng.choice(sorted(self.living))
        node = self.nodes[p]
        rows = node.changes.directory.rows
        may_crash = self.crashes > 0 and r < 0.12 and len(self.living) > 1
        if may_crash and (len(self.dead_at) < self.at_once or self.settled()):
            self.crashes -= 1
            lead = [q for q in self.living if self.nodes[q].changes.lead is not Lead.IDLE]
            host = [row.leader for row in rows.values() if row.leader in self.living]
            self.crash(rng.choice(lead or host or [p]) if rng.random() < 0.6 else p)
            return True
        if self.arrivals > 0 and r < 0.2:
            self.arrivals -= 1
            self.arrive()
            return True
        if self.wishes > 0 and r < 0.3 and node.changes.nodes and rows:
            self.wishes -= 1
            self.wish(p, rng.choice(list(rows)))
            return True
        if self.sends > 0:
            many = rng.randint(2, 6) if rng.random() < self.burst else 1
            for _ in range(min(many, self.sends)):
                self.sends -= 1
                if p in self.living:
                    self.multicast(p)
            return True
        return False

    def wish(self, p, g):
        node, rng = self.nodes[p], self.rng
        changes, rows = node.changes, node.changes.directory.rows
        r = rng.random()
        if r < 0.35:
            to = rng.choice(sorted(self.living))
            self.step(p, lambda n: n.changes.ask_coordinator(n, WantMoved(g, to)))
        elif r < 0.45 and "arrivals" in self.flags and self.unfounded:
            g = self.unfounded.pop(0)
            self.join(p, GroupEntry(g, NAMES[g - 1], self.order, "seq", 7))
        elif r < 0.5 and "arrivals" in self.flags:
            drained = WantDrained(rng.choice(sorted(self.living)), rng.random() < 0.6)
            self.step(p, lambda n: n.changes.ask_coordinator(n, drained))
        elif "restless" in self.flags:
            if self.wanting.get((p, g), "join" if p in rows[g].members else "leave") == "join":
                self.leave(p, g)
            else:
                self.join(p, rows[g].entry)
        elif g in changes.unmet or not self.is_still(p, g):
            pass
        elif p in rows[g].members:
            self.leave(p, g)
        else:
            self.join(p, rows[g].entry)

    def leave(self, p, g):
        self.wanting[p, g] = "leave"
        self.step(p, lambda n: n.changes.want_out(n, g))

    def join(self, p, entry):
        self.wanting[p, entry.gid] = "join"
        self.step(p, lambda n: n.changes.want_in(n, WantIn(entry, "member")))

    def is_still(self, p, g):
        """A live node asks to be in again only when it has had its last view."""
        seat = self.nodes[p].service.member.seats.get(g)
        return seat is None or seat.stay.name == "IN"

    def open_channels(self):
        return [k for k, q in self.channels.items() if q and k[1] in self.living and self.knows(*k)]

    def knows(self, a, b, channel):
        """Packets of a node wait for the view that lets it in."""
        return a in self.alive_for(b) or not any(a in self.views[i].pids for i in self.notices[b])

    def ring(self):
        ringing = [p for p in self.living if self.nodes[p].timers]
        if not ringing:
            return False
        p = self.rng.choice(sorted(ringing))
        timers = self.nodes[p].timers
        g, name = timers.pop(self.rng.randrange(len(timers)))
        self.step(p, lambda node: node.service.handle(Timer(g, name)))
        return True

    def consume(self):
        taking = [
            (p, g) for p in sorted(self.living) for g, n in self.nodes[p].untaken.items() if n
        ]
        if not self.consumes or not taking:
            return False
        p, g = self.rng.choice(taking)
        frames = self.rng.randint(1, self.nodes[p].untaken[g])
        self.nodes[p].untaken[g] -= frames
        self.step(p, lambda node: node.service.handle(Consumed(g, frames)))
        return True

    def refound(self):
        """Those who are absent do not come back here: an operator says so."""
        waiting = {(p, g) for p in sorted(self.living) for g in self.nodes[p].changes.unmet}
        for p, g in sorted(waiting):
            refound = WantRefounded(g)
            self.step(p, lambda n, refound=refound: n.changes.ask_coordinator(n, refound))
        return bool(waiting)

    def ask_again(self):
        """A heartbeat of those who wait to hear that they are out: nobody else needs one."""
        waiting = [p for p in sorted(self.living) if self.nodes[p].changes.unconfirmed]
        for p in waiting:
            self.step(p, lambda node: (node.changes.press(node), node.changes.run_local(node)))
        return bool(waiting)

    def run(self, limit=60_000):
        rng = self.rng
        idle = 0
        while self.steps < limit:
            self.steps += 1
            channels = self.open_channels()
            told = [p for p in sorted(self.living) if self.notices[p]]
            more = self.sends > 0 or self.wishes > 0 or (self.crashes > 0 and len(self.living) > 1)
            more = more or self.arrivals > 0
            if "storm" in self.flags and rng.random() < 0.01:
                self.slow = {(a, b) for a in self.nodes for b in self.nodes if rng.random() < 0.3}
            if more and (rng.random() < self.pace or not (channels or told)):
                if self.act() or channels or told:
                    continue
                if self.sends <= 0 and self.wishes <= 0 and rng.random() < 0.02:
                    self.crashes = self.arrivals = 0
                continue
            if rng.random() < 0.1 and (self.consume() or self.ring()):
                continue
            if told and (not channels or rng.random() < 0.08):
                self.take_notice(rng.choice(told))
                continue
            if not channels:
                if self.ring() or self.consume():
                    continue
                idle += 1
                if idle < 3 and self.refound():
                    continue
                if idle < 6 and self.ask_again():
                    continue
                return self
            key = rng.choice(channels)
            if "storm" in self.flags:
                fast = [key for key in channels if key[:2] not in self.slow]
                key = rng.choice(fast) if fast and rng.random() < 0.985 else key
            elif key[:2] in self.slow and rng.random() < 0.93 and len(channels) > 1:
                key = rng.choice(channels)
            self.receive(*key)
        raise AssertionError("no end")

    def receive(self, a, b, channel):
        queue = self.channels[a, b, channel]
        if self.lossy and channel == "data":
            if self.rng.random() < 0.1 and self.steps < 20_000:
                queue.popleft()
                return
            if self.rng.random() < 0.2:
                queue.rotate(-1)
        packet = queue.popleft()
        if a not in self.alive_for(b):
            return
        if channel == "data":
            self.step(b, lambda node: node.service.handle(packet))
        else:
            self.step(b, lambda node: node.changes.receive(node, a, packet))
