"""Schedules of the agreement on node views, written by hand.

Every packet waits until the schedule hands it over. Connections come and break at once.
"""

from __future__ import annotations

import random
from collections import deque

from ordercast.membership.agreement_table import Standing
from tests.agreement.simulated_cluster import TIMEOUT_TICKS, SimulatedCluster


class ScriptedCluster(SimulatedCluster):
    """All nodes of these names are in one view when it begins, unless `first` names fewer."""

    def __init__(self, names, *, first=None, **settings):
        super().__init__(list(names), random.Random(0), **settings)
        first = names if first is None else first
        self.start(self.names.index(first[0]), first=True)
        for name in first[1:]:
            self.start(self.names.index(name))
            self.go_on(3)
        assert self.view(first[-1]).pids == self.view(first[0]).pids

    # -- what stands in a schedule ----------------------------------------------------------------

    def pid(self, name):
        return self.current[self.names.index(name)]

    def m(self, name):
        """The machine of this node."""
        return self.nodes[self.pid(name)].machine

    def view(self, name):
        return self.m(name).view

    def standing(self, name):
        pid = self.current.get(self.names.index(name))
        return Standing.OUT if pid is None else self.nodes[pid].machine.standing

    def named(self, view):
        """The names of the nodes of a view."""
        return "".join(node.name for node in view.nodes)

    def say(self, name, to, header):
        """A packet that this node would not have sent."""
        self.hand(self.pid(name), self.pid(to), header)

    def hand_over(self, only=lambda src, dst, header: True):
        """Hand over all packets that there are, and those that follow, except some, which wait."""
        while True:
            keys = [k for k, queue in self.links.items() if queue and self.is_open(*k)]
            keys = [k for k in keys if only(*self.names_of(k), self.links[k][0])]
            if not keys:
                return
            p, q = min(keys)
            self.hand(p, q, self.links[p, q].popleft())
            self.do_what_is_due()

    def names_of(self, key):
        return tuple(self.nodes[p].name for p in key)

    def go_on(self, ticks=1, only=lambda src, dst, header: True):
        """Ticks of everybody, and all packets."""
        for _ in range(ticks):
            self.hand_over(only)
            self.steps += 10
            self.do_what_is_due()
            for p in self.living():
                if not self.is_paused(p):
                    self.tick(p)
            self.hand_over(only)

    def until_suspected(self, only=lambda src, dst, header: True):
        self.go_on(TIMEOUT_TICKS + 2, only)

    def kill(self, *names):
        for name in names:
            self.crash(self.names.index(name))

    def boot(self, *names):
        for name in names:
            self.start(self.names.index(name))

    def cut(self, *sides):
        """Parts of the network, as strings of names."""
        self.part({self.names.index(n): i for i, side in enumerate(sides) for n in side})

    def do_what_is_due(self):
        due = [act for at, act in self.later if at <= self.steps]
        self.later = [(at, act) for at, act in self.later if at > self.steps]
        for act in due:
            act()

    # -- connections ------------------------------------------------------------------------------

    def connect(self, p, q):
        self.links[p, q], self.links[q, p] = deque(), deque()
        self.connected(p, q)
        self.connected(q, p)

    def disconnect(self, p, q):
        self.links.pop((p, q), None)
        self.links.pop((q, p), None)
        self.broken(p, q)
        self.broken(q, p)
