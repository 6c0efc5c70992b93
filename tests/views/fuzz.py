"""python -m tests.views.fuzz RUNS [first seed]: lying peers, in every state that real runs reach.

A run stops after every few steps. In copies of its nodes, packets that were sent, or are on their
way, arrive once more with some field changed, or from another node. Whatever a node is told, it
raises nothing but a `PeerError`, its own invariants hold, and honest packets do not break it later.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter

import msgspec

from ordercast.core.events import Receive, Timer
from ordercast.core.output import Output
from ordercast.errors import PeerError
from tests.views.oracle_cluster import FLAGS, ORDERS, OracleCluster, OracleNode

NUMBERS = (-(2**63), -1, 0, 1, 2, 3, 7, 2**16, 2**32 - 2, 2**40, 2**53, 2**62, 2**63 - 1)
TEXTS = ("", "x" * 300, "a\n", "seq", "hybrid")


def mutated(rng, value):
    """A value of the same type, somewhere different."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((*NUMBERS, value + 1, value - 1, value + 2, value * 2))
    if isinstance(value, str):
        return rng.choice(TEXTS)
    if isinstance(value, bytes):
        return rng.choice((b"", value + b"x"))
    if isinstance(value, tuple) and value:
        i = rng.randrange(len(value))
        r = rng.random()
        if r < 0.15:
            return value[:i] + value[i + 1 :]
        if r < 0.3:
            return (*value, value[i])
        return (*value[:i], mutated(rng, value[i]), *value[i + 1 :])
    if isinstance(value, msgspec.Struct) and value.__struct_fields__:
        name = rng.choice(value.__struct_fields__)
        return msgspec.structs.replace(value, **{name: mutated(rng, getattr(value, name))})
    return value


def is_typed(value):
    """Would the wire carry it? Fields keep their types, so tuples of fixed length are complete."""
    try:
        return msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=type(value)) == value
    except (msgspec.ValidationError, OverflowError):
        return False


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


def tell(node, src, packet):
    """A packet; True if its sender is at fault."""
    try:
        if isinstance(packet, Receive):
            node.service.handle(packet)
        else:
            node.changes.receive(node, src, packet)
        node.changes.look_whether_ready(node)
    except PeerError:
        return True
    faults = bool(node.out.faults)
    node.out.faults.clear()
    return faults


def lie(rng, cluster, counts):
    """One packet, changed, to a copy of one node; then what is honestly on its way."""
    to = rng.choice(sorted(cluster.living))
    src, packet = rng.choice(cluster.said)
    if isinstance(packet, Receive):
        wrong = msgspec.structs.replace(packet, src=src)
        field = rng.choice(("group", "era", "header", "header", "header", "src", "payload"))
        if field == "src":
            wrong = msgspec.structs.replace(packet, src=rng.choice(sorted(cluster.nodes)))
        else:
            wrong = msgspec.structs.replace(packet, **{field: mutated(rng, getattr(packet, field))})
        src, typed = wrong.src, is_typed(wrong.header)
    else:
        wrong = packet if rng.random() < 0.15 else mutated(rng, packet)
        src, typed = rng.choice((src, *sorted(cluster.nodes))), is_typed(wrong)
    if not typed or src == to:
        return
    node = twin(cluster.nodes[to])
    kind = type(wrong.header if isinstance(wrong, Receive) else wrong).__name__
    counts[kind] += 1
    try:
        counts["faults"] += tell(node, src, wrong)
        node.service.invariants()
        node.changes.invariants()
        node.out.clear()
        for (a, b, _), queue in cluster.channels.items():
            for honest in list(queue)[:4] if b == to else ():
                tell(node, a, honest)
                node.out.clear()
        for g, name in node.timers[:4]:
            node.service.handle(Timer(g, name))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise AssertionError(f"{wrong!r} from {src} to {to}: {error!r} {where}") from error


class Liars(OracleCluster):
    """A run in which somebody lies to copies of the nodes, now and then."""

    def __init__(self, seed, lies=2, **kinds):
        super().__init__(seed, **kinds)
        self.liar = random.Random(f"lies of {seed}")
        self.said, self.lies, self.counts = [], lies, Counter()

    def receive(self, a, b, channel):
        queue = self.channels[a, b, channel]
        self.said.append((a, queue[0]))
        del self.said[:-200]
        super().receive(a, b, channel)
        if self.liar.random() < 0.5:
            for _ in range(self.lies):
                lie(self.liar, self, self.counts)


def fuzz(seed):
    """One run with liars; how many packets of each kind were changed."""
    rng = random.Random(seed)
    flags = rng.sample(sorted(FLAGS), rng.randint(0, 4))
    k, crashes = rng.choice(((0, 1), (1, 1), (2, 2)))
    run = Liars(seed, order=rng.choice(sorted(ORDERS)), k=k, crashes=crashes, flags=flags)
    run.run()
    return run.counts


def main(runs, first=0):
    total, broken = Counter(), []
    for seed in range(first, first + runs):
        try:
            total += fuzz(seed)
        except AssertionError as error:
            broken.append(seed)
            print(seed, str(error)[:600], flush=True)
    print(f"{runs} runs, {len(broken)} FAILED {broken[:10]}; {dict(total)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
