"""What the causal hold-back costs: CPU time per frame at a member that listens, without codec.

All others of its group speak at random times, and every packet takes its own time, so frames
overtake each other. What arrives at the listener is recorded once, with the headers that real
machines wrote, and then handed to fresh machines, the best of several runs. Nobody acknowledges.

`vector` looks at one integer per member and frame, `cbcast` at the entries that are news: the more
frames are under way at once, the more there are. Packets take 0.5 to 3 ms.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from bench.plot import write_plot
from ordercast.core.events import Cut, Multicast, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.protocols.cbcast import CausalData, Cbcast
from ordercast.protocols.vector import CausalVector
from ordercast.simulation.run import no_collection

FRAMES = {8: 4000, 64: 2000, 512: 1000}  # by the number of members
APART_US = (400.0, 100.0, 25.0)  # mean time between two frames of the group
LATE = 64  # in one run each frame is up to so many places late: most of them are held
DELAY_US = (500.0, 3000.0)
BATCH = 16  # packets that a driver hands over in one step
REPEATS = 30
GROUP: GroupId = 1
LISTENER: ProcessId = 0
PLOT = Path("out/holdback.svg")

QUIET = Options(ack_every=1_000_000)


class AtOnce(Cbcast):
    """Delivers what comes: what is left is not the hold-back's."""

    @on(CausalData)
    def at_once(self, pj: ProcessId, g: GroupId, data: CausalData, m: bytes) -> None:
        """No number is looked at."""
        self.stability[g].learn_stable(pj, data.stable)
        self.deliver(g, pj, data.n, m, data.changed)


def machine(protocol: type[OrderingProtocol], me: ProcessId, n: int) -> OrderingProtocol:
    """A member of a group of n."""
    one = protocol(me, QUIET)
    one.step([Cut((), (View(GROUP, 1, tuple(range(n)), 0),))])
    return one


def traffic(
    protocol: type[OrderingProtocol], n: int, frames: int, apart_us: float
) -> list[Receive]:
    """What arrives at the listener, in the order of arrival."""
    rng = Random(f"hold-back {n} {apart_us}")
    speakers = [machine(protocol, p, n) for p in range(n)]
    inboxes: list[list[tuple[float, int, Receive]]] = [[] for _ in range(n)]
    now = 0.0
    for number in range(frames):
        now += rng.expovariate(1 / apart_us)
        p = rng.randrange(1, n)
        inbox = sorted(inboxes[p])
        inboxes[p] = [late for late in inbox if late[0] > now]
        speakers[p].step([packet for arrival, _, packet in inbox if arrival <= now])
        ((to, g, era, header, payload),) = speakers[p].step([Multicast(GROUP, b"m")]).transmits
        packet = Receive(p, g, era, header, payload)
        for q in to:
            inboxes[q].append((now + rng.uniform(*DELAY_US), number, packet))
    return [packet for _, _, packet in sorted(inboxes[LISTENER])]


def disordered(packets: Sequence[Receive]) -> list[Receive]:
    """The same packets, each up to LATE places late."""
    rng = Random("disorder")
    places = sorted(range(len(packets)), key=lambda place: place + rng.uniform(0, LATE))
    return [packets[place] for place in places]


def cost_us(protocol: type[OrderingProtocol], n: int, packets: Sequence[Receive]) -> float:
    """CPU time per frame at the listener."""
    batches = [packets[at : at + BATCH] for at in range(0, len(packets), BATCH)]
    best = float("inf")
    with no_collection():
        for _ in range(REPEATS):
            listener = machine(protocol, LISTENER, n)
            delivered = 0
            before = time.process_time()
            for batch in batches:
                delivered += len(listener.step(batch).deliveries)
            best = min(best, time.process_time() - before)
            assert delivered == len(packets), "every frame is delivered in the end"
    return best / len(packets) * 1e6


def entries(packets: Sequence[Receive]) -> float:
    """Mean number of entries in a header."""
    headers = [packet.header for packet in packets]
    return sum(len(h.changed) / 3 for h in headers if isinstance(h, CausalData)) / len(headers)


def run() -> dict[str, object]:
    """The figures of this part of the bench, and a plot of the cost for n = 8, 64, 512."""
    figures: dict[str, object] = {}
    curves: dict[str, dict[float, float]] = {}
    for n, frames in FRAMES.items():
        packets = traffic(CausalVector, n, frames, APART_US[0])
        curves.setdefault("vector", {})[n] = cost_us(CausalVector, n, packets)
        for apart_us in reversed(APART_US):
            packets = traffic(Cbcast, n, frames, apart_us)
            name = f"cbcast, a frame every {apart_us:g} us"
            curves.setdefault(name, {})[n] = cost_us(Cbcast, n, packets)
            figures[f"{n} members: {name}: entries per header"] = entries(packets)
        name = f"cbcast, the same up to {LATE} places late"
        curves.setdefault(name, {})[n] = cost_us(Cbcast, n, disordered(packets))
        curves.setdefault("delivered at once", {})[n] = cost_us(AtOnce, n, packets)
        for name, curve in curves.items():
            figures[f"{n} members: {name}: us per frame"] = curve[n]
            alone = curve[n] - curves["delivered at once"][n]
            figures[f"{n} members: {name}: of that the hold-back"] = alone
    write_plot(PLOT, "Causal hold-back", "members of the group", "us of CPU per frame", curves)
    figures["plot"] = str(PLOT)
    return figures
