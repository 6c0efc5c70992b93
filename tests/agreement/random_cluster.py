"""Random runs of the agreement on node views.

Faults of a run: crashes of one and of many together, restarts of all but one, partitions, single
links that break or hold packets back in one direction, processes that stop for a while, applicants
that never connect, false accusations, and words of an operator, also wrong ones.
"""

from __future__ import annotations

import random
from collections import Counter

from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_headers import JoinView, Suspect
from ordercast.membership.node_view import NodeEntry
from tests.agreement.simulated_cluster import INVOLVED, PHANTOM, SimulatedCluster


class RandomCluster(SimulatedCluster):
    """A run. `electorate`: there is a list of voters, the first hosts; `workers`: the other hosts
    do not vote; `operator`: somebody says forget and recover, knowing nothing."""

    def __init__(
        self,
        seed,
        *,
        electorate=False,
        workers=False,
        partition="primary",
        operator=False,
        machine=Agreement,
    ):
        rng = random.Random(f"{seed} {electorate} {workers} {partition} {operator}")
        hosts = rng.randint(3, 7)
        stable = rng.randint(3, min(5, hosts))
        names = [f"p{h}" for h in range(hosts)]
        super().__init__(
            names,
            rng,
            electorate=names[:stable] if electorate else (),
            workers=names[stable:] if workers else (),
            partition=partition,
            machine=machine,
        )
        self.seed, self.operator = seed, operator
        self.faults = Counter()
        self.rates = {name: rng.choice((0, 1, 1, 3)) for name in FAULTS}
        self.start(0, first=True)
        for h in range(1, stable):
            self.start(h)

    def run(self, turns=None):
        rng = self.rng
        for _ in range(turns or rng.choice((300, 600, 1200))):
            self.turn()
            if rng.random() < 0.04:
                self.fault()
        self.heal()
        return self

    # -- faults -----------------------------------------------------------------------------------

    def fault(self):
        name = self.rng.choice(tuple(FAULTS))
        if self.rng.random() < self.rates[name] / 3:
            self.faults[name] += 1
            FAULTS[name](self, self.rng.randrange(self.hosts))

    def crash_some(self, h):
        for host in self.rng.sample(range(self.hosts), self.rng.choice((1, 1, 1, 2, 3))):
            self.crash(host)

    def restart_all_but_one(self, h):
        for host in range(self.hosts):
            if host != h and self.current.get(host) is not None:
                self.crash(host)
                self.after(self.rng.randint(5, 60), lambda host=host: self.start(host))

    def kill_the_workers(self, h):
        for name in sorted(self.workers) or self.names[-2:]:
            self.crash(self.names.index(name))

    def start_one(self, h):
        self.start(h)

    def part_at_random(self, h):
        sides = self.rng.choice((1, 2, 2, 3))
        self.part({i: self.rng.randrange(sides) for i in range(self.hosts)})

    def unite(self, h):
        self.part({})

    def leave(self, h):
        pid = self.current.get(h)
        if len(self.living()) > 1 and pid in self.involved():
            self.step(pid, lambda m, n: m.leave(n))

    def break_a_link(self, h):
        links = [k for k in self.links if self.nodes[k[0]].up and self.nodes[k[1]].up]
        if links:
            p, q = self.rng.choice(sorted(links))
            self.disconnect(p, q)
            self.after(self.rng.choice((5, 30, 200)), lambda: self.mend_link(p, q))

    def mend_link(self, p, q):
        both = self.nodes[p].up and self.nodes[q].up
        if both and self.linked(p, q) and (p, q) not in self.links:
            self.connect(p, q)

    def hold_a_direction(self, h):
        pair = tuple(self.rng.sample(range(self.hosts), 2))
        self.held.add(pair)
        self.after(self.rng.choice((30, 100, 300)), lambda: self.held.discard(pair))

    def pause(self, h):
        if self.current.get(h) is not None:
            self.paused[h] = self.steps + self.rng.choice((20, 70, 200))

    def apply_in_vain(self, h):
        """A name, perhaps that of a node, behind which nobody is."""
        name = self.rng.choice((*self.names, "nobody"))
        pid = PHANTOM + self.rng.randrange(1000)
        entry = NodeEntry(pid, name, self.rng.choice((1, 2, 1 << 40)))
        for again in range(0, self.rng.choice((1, 10, 60)), 10):
            for q in self.involved():
                self.after(again, lambda q=q: self.ask(q, entry))

    def ask(self, q, entry):
        self.step(q, lambda m, n: m.receive(n, entry.pid, JoinView(entry)))

    def accuse_falsely(self, h):
        pids = self.involved()
        if len(pids) < 3:
            return
        liar, victim = self.rng.sample(pids, 2)
        for again in range(0, self.rng.choice((1, 50, 150)), 10):
            self.after(again, lambda: self.say_accusation(liar, victim))

    def say_accusation(self, liar, victim):
        machine = self.nodes[liar].machine
        if self.nodes[liar].up and machine.standing in INVOLVED and victim in machine.pids:
            for p in machine.pids:
                if p != liar:
                    self.transmit(liar, p, Suspect(machine.view.id, victim))

    def operate(self, h):
        pids = self.involved()
        if self.operator and pids:
            pid = self.rng.choice(pids)
            view = self.nodes[pid].machine.view
            gone = self.rng.choice(((), tuple(self.rng.sample(view.pids, 1))))
            self.spoken = True
            self.step(pid, lambda m, n: m.forget(n, gone))


FAULTS = {
    "crash": RandomCluster.crash_some,
    "start": RandomCluster.start_one,
    "start again": RandomCluster.start_one,
    "restart all but one": RandomCluster.restart_all_but_one,
    "kill the workers": RandomCluster.kill_the_workers,
    "part": RandomCluster.part_at_random,
    "unite": RandomCluster.unite,
    "leave": RandomCluster.leave,
    "break a link": RandomCluster.break_a_link,
    "hold a direction": RandomCluster.hold_a_direction,
    "pause": RandomCluster.pause,
    "apply in vain": RandomCluster.apply_in_vain,
    "accuse falsely": RandomCluster.accuse_falsely,
    "operate": RandomCluster.operate,
}
