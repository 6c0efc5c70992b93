"""Lies in the agreement on node views.

    probe     a copy of one machine, in a state of a random run, is told something wrong by a sender
              of some kind: nothing but a PeerError is raised, invariants hold
    lie       one node of a running cluster, or somebody outside, says wrong things again and again;
              when it stops, the cluster is primary, with everybody in, and was never two

python -m tests.agreement.fuzzed_cluster RUNS [first seed] [electorate] [workers] [merge]
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import msgspec

from fuzz.mutate import Seen, drawn, mutated
from ordercast.errors import PeerError
from ordercast.membership.agreement_headers import AGREEMENT_HEADERS
from ordercast.membership.agreement_table import Standing
from ordercast.membership.node_view import NodeEntry
from tests.agreement.random_cluster import RandomCluster
from tests.agreement.simulated_cluster import PHANTOM

STRANGER = PHANTOM + 5000
SENDERS = ("coordinator", "member", "applicant", "former", "stranger", "contact", "itself")


class Nowhere:
    """A cluster in which nobody hears this machine."""

    def send(self, to, header):
        msgspec.msgpack.encode(header)  # what a machine says can be sent

    def tell(self, news):
        pass

    def begin_view(self, view, excluded):
        pass

    def may_leave(self, p):
        return True

    def blame(self, p, why):
        pass


class FuzzedCluster(RandomCluster):
    """A random run whose machines are probed."""

    def __init__(self, seed, **settings):
        self.seen = Seen()
        self.headers = {}  # type -> honest ones
        self.probed = Counter()  # (header, sender, standing)
        self.raised = Counter()
        super().__init__(seed, **settings)

    def transmit(self, p, q, header):
        self.seen.note(header)
        kept = self.headers.setdefault(type(header), [])
        kept.append(header)
        del kept[:-30]
        super().transmit(p, q, header)

    def wrong(self, kind):
        """A packet of this kind."""
        known = self.headers.get(kind)
        if known and self.rng.random() < 0.8:
            return mutated(self.rng.choice(known), self.seen, self.rng)
        return drawn(kind, self.seen, self.rng)

    # -- one machine ------------------------------------------------------------------------------

    def senders(self, machine):
        """One of each kind, as this machine sees it."""
        pids = [p for p in machine.pids if p != machine.me]
        found = {"stranger": STRANGER}
        if pids:
            found["member"] = pids[-1]
            found["coordinator"] = machine.acting() if machine.acting() in pids else pids[0]
        for kind, some in (
            ("applicant", machine.entrance.applicants.of),
            ("former", machine.sides.lost),
            ("contact", machine.entrance.contacts),
        ):
            if some:
                found[kind] = next(iter(some))
        return found

    def probe(self, count):
        """Copies of machines are told wrong things; each copy a few, one after the other."""
        for _ in range(count):
            pid = self.rng.choice(self.living())
            copy = self.nodes[pid].machine.copy()
            sender, src = self.rng.choice(sorted(self.senders(copy).items()))
            for _ in range(self.rng.choice((1, 1, 2, 4))):
                header = self.wrong(self.rng.choice(AGREEMENT_HEADERS))
                self.probed[type(header).__name__, sender, copy.standing.name] += 1
                self.tell_copy(copy, src, header)

    def tell_copy(self, copy, src, header):
        words = f"seed {self.seed}: {header} from {src} to {copy.me} in {copy.standing.name}"
        try:
            copy.receive(Nowhere(), src, header)
        except PeerError:
            self.raised[type(header).__name__] += 1
        except Exception as error:
            raise AssertionError(f"{error!r} by {words}") from error
        try:
            copy.invariants()
            if self.rng.random() < 0.3:  # timers that it armed
                copy.tick(Nowhere())
                copy.invariants()
        except Exception as error:
            raise AssertionError(f"{error!r} after {words}") from error

    # -- one bad sender ---------------------------------------------------------------------------

    def lie(self, h, turns):
        """So long this host says wrong things to the others; h = -1: somebody who only applies."""
        for _ in range(turns):
            self.turn()
            if self.rng.random() < 0.5:
                self.say_something_wrong(h)

    def say_something_wrong(self, h):
        victims = [p for p in self.living() if p != self.current.get(h)]
        src = STRANGER if h < 0 else self.current.get(h)
        if src is None or not victims:
            return
        q = self.rng.choice(victims)
        header = self.wrong(self.rng.choice(AGREEMENT_HEADERS))
        self.probed[type(header).__name__, "liar", self.nodes[q].machine.standing.name] += 1
        self.step(q, lambda m, n: m.receive(n, src, header))

    def hand(self, p, q, header):
        """Whoever was lied to may pass it on: nobody is judged by that here."""
        self.step(q, lambda m, n: m.receive(n, p, header))


def probe_run(seed, probes=6, **settings):
    """States of a whole random run, with all its faults."""
    run = FuzzedCluster(seed, **settings)
    for _ in range(run.rng.choice((200, 400))):
        run.turn()
        if run.rng.random() < 0.04:
            run.fault()
        if run.living() and run.rng.random() < 0.5:
            run.probe(probes)
    return run


def lying_run(seed, **settings):
    """Four nodes or more; one of them, or an applicant, lies; there are no other faults."""
    run = FuzzedCluster(seed, **settings)
    for h in range(run.hosts):
        run.start(h)
    run.heal(600)
    if run.hosts < 4 or not run.is_settled():
        return None
    liar = run.rng.choice((-1, 0, run.rng.randrange(run.hosts)))
    if liar < 0:
        run.seen.note(NodeEntry(STRANGER, "nobody", 1))
    run.lie(liar, run.rng.choice((30, 100, 300)))
    run.spoken = True  # a liar can speak as an operator
    run.heal()
    run.liar = liar
    if not run.is_settled():
        run.bad.add("not all came in again")
    standings = [run.nodes[p].machine.standing for p in run.living()]
    if not any(s is Standing.IN for s in standings):
        run.bad.add("nobody is primary")
    return run


def main(runs, first, *flags):
    settings = {
        "electorate": "electorate" in flags,
        "workers": "workers" in flags,
        "partition": "merge" if "merge" in flags else "primary",
    }
    t, probed, failed, lied = time.process_time(), Counter(), {}, 0
    for seed in range(first, first + runs):
        try:
            probed += probe_run(seed, **settings).probed
            run = lying_run(seed, **settings)
            if run is not None:
                lied += 1
                probed += run.probed
                for bad in run.bad:
                    failed.setdefault(bad, []).append((seed, run.liar))
        except AssertionError as error:
            failed.setdefault(str(error)[:400], []).append(seed)
    places = len(probed)
    print(f"{' '.join(flags) or 'plain'}: {runs} runs, {sum(probed.values())} wrong packets in "
          f"{places} places (header, sender, standing), {lied} runs with a liar, "
          f"{time.process_time() - t:.0f} s of CPU",
          {b: (len(s), s[:6]) for b, s in failed.items()}, flush=True)  # fmt: skip


if __name__ == "__main__":
    numbers = [int(x) for x in sys.argv[1:] if x.isdigit()]
    main(*[*numbers, 0][:2], *[x for x in sys.argv[1:] if not x.isdigit()])
