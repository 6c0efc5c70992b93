"""What carries the packets: loss, duplication, delay, order, partitions.

Reordering is no option of its own: it follows from delays that differ. With `fifo` packets of one
process to another never overtake each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

import msgspec

from ordercast.core.declaration import Network
from ordercast.core.events import Receive
from ordercast.core.ids import ProcessId
from ordercast.core.output import Transmit
from ordercast.process.process import CLUSTER_GROUP
from ordercast.reliability.link import Linked
from ordercast.simulation.agenda import Arrival, Lane
from ordercast.simulation.delays import Delay, Uniform

FIRST_BLOCK = 256  # fates drawn at once, at the start ...
MOST_AT_ONCE = 8192  # ... and in a long run


class NetworkModel(msgspec.Struct, frozen=True, kw_only=True):
    """How a network behaves, apart from partitions, which are faults."""

    loss: float = 0.0  # a packet is lost with this probability
    duplicate: float = 0.0  # a packet that is not lost arrives twice with this probability
    delay: Delay = Uniform(500, 1500)
    fifo: bool = False  # packets of one process to another arrive in the order they were sent
    broadcast: bool = False  # one packet reaches all its receivers; each may lose it by itself
    transform: Callable[[Receive], Receive] | None = None  # every packet, e.g. through a codec
    # packets of the cluster travel on connections, as those of live nodes do: none is lost or
    # overtaken, a cut holds them up until it is healed, a crash loses the last of them
    connections: bool = False

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise ValueError(f"{name}={value} must be a probability below 1: 0 <= {name} < 1")

    def copies(self, receivers: Sequence[ProcessId]) -> int:
        """How many packets it takes to reach them."""
        return min(len(receivers), 1) if self.broadcast else len(receivers)

    def network_class(self, *, partitions: bool = False) -> Network:
        """The class of this network; one that is cut for a while loses packets."""
        if self.loss > 0 or partitions:
            return "N0"
        if self.duplicate > 0 or not self.fifo:
            return "N1"
        return "N2"

    def cluster_class(self) -> Network | None:
        """The class of what carries packets of the cluster, if that is something else."""
        return "N2" if self.connections else None


class Medium:
    """A network at work: it puts packets into the agenda, or does not.

    The fate of a packet is one number, drawn ahead in blocks: the ticks it travels; 0 if it is
    lost; negative (minus the ticks it travels) if a second copy follows.
    """

    def __init__(
        self, model: NetworkModel, processes: int, packets: Lane[Arrival], rng: Random
    ) -> None:
        self.model = model
        self.packets = packets
        self.rng = rng
        self.fates: list[int] = []
        self.next_fate = 0
        self.block = FIRST_BLOCK
        self.orderly = not (model.loss or model.duplicate or model.fifo)
        # the tick of the last arrival, by sender and receiver; kept only for fifo
        self.last_arrival: list[list[int]] = (
            [[0] * processes for _ in range(processes)] if model.fifo or model.connections else []
        )
        self.held_up: list[Arrival] = []  # on connections that are cut, in order
        self.broken: set[tuple[ProcessId, ProcessId]] = set()  # connections, until there is another
        self.side: list[int] | None = None  # of each process, while there is a partition
        # one per receiver, or one for all on a broadcast network; by what they carry
        self.packets_of: dict[type[msgspec.Struct], int] = {}
        self.bytes_from = [0] * processes  # of the payloads of these, by who sent them
        self.lost = 0
        self.duplicated = 0
        self.cut = 0  # lost because receiver and sender were on different sides

    @property
    def packets_sent(self) -> int:
        """Of all kinds."""
        return sum(self.packets_of.values())

    def carry(self, src: ProcessId, now: int, transmits: Iterable[Transmit]) -> None:
        """Take what a machine transmits at `now`."""
        packets = self.packets
        for receivers, group, era, header, payload in transmits:
            packet = Receive(src, group, era, header, payload)
            if self.model.transform is not None:
                packet = self.model.transform(packet)
            batch = (packet,)
            copies = self.model.copies(receivers)
            kind = type(header) if type(header) is not Linked else type(header.header)
            self.packets_of[kind] = self.packets_of.get(kind, 0) + copies
            self.bytes_from[src] += copies * len(payload)
            if group == CLUSTER_GROUP and self.model.connections:
                self._carry_on_connections(src, receivers, batch, now)
                continue
            if self.side is not None:
                receivers = self._reachable(src, receivers)
            fates = self._draw(len(receivers))
            if self.orderly:
                for receiver, delay in zip(receivers, fates, strict=True):
                    packets[now + delay].append((receiver, batch))
            else:
                for receiver, fate in zip(receivers, fates, strict=True):
                    self._suffer(receiver, batch, now, fate)

    def _carry_on_connections(
        self, src: ProcessId, receivers: Iterable[ProcessId], batch: tuple[Receive], now: int
    ) -> None:
        last = self.last_arrival[src]
        for receiver in receivers:
            if (src, receiver) in self.broken:
                self.lost += 1
            elif self.reaches(src, receiver):
                delay = self.model.delay.draw(self.rng, 1)[0]
                last[receiver] = tick = max(now + delay, last[receiver])
                self.packets[tick].append((receiver, batch))
            else:
                self.cut += 1
                self.held_up.append((receiver, batch))

    def go_on(self, now: int) -> None:
        """Connections that are whole again bring what they held up."""
        held_up, self.held_up = self.held_up, []
        for receiver, batch in held_up:
            self._carry_on_connections(batch[0].src, (receiver,), batch, now)

    def partition(self, sides: Sequence[Sequence[ProcessId]], processes: int) -> None:
        """From now on a packet passes only inside one side; who is in no side is in the last."""
        self.side = [len(sides)] * processes
        for number, members in enumerate(sides):
            for p in members:
                self.side[p] = number

    def reaches(self, p: ProcessId, q: ProcessId) -> bool:
        """Do packets of p come to q?"""
        return self.side is None or self.side[p] == self.side[q]

    def heal(self) -> None:
        """Everybody reaches everybody again. What was cut off stays lost."""
        self.side = None

    def calm(self) -> None:
        """From now on no packet is lost or doubled."""
        self.model = msgspec.structs.replace(self.model, loss=0.0, duplicate=0.0)
        self.fates, self.next_fate = [], 0
        self.orderly = not self.model.fifo

    def forget_sender(self, p: ProcessId, probability: float) -> set[ProcessId]:
        """Lose each packet of p that is under way with this probability.

        Nothing arrives behind a lost one on a connection that breaks, and with `fifo`. Says to whom
        connections of packets of the cluster broke.
        """
        broken: set[tuple[ProcessId, bool]] = set()  # (receiver, on a connection): nothing more
        for tick in sorted(self.packets):
            kept = []
            for arrival in self.packets[tick]:
                receiver, batch = arrival
                connected = self.model.connections and batch[0].group == CLUSTER_GROUP
                is_gone = (receiver, connected) in broken
                if batch[0].src == p and (is_gone or self.rng.random() < probability):
                    self.lost += 1
                    if self.model.fifo or connected:
                        broken.add((receiver, connected))
                else:
                    kept.append(arrival)
            self.packets[tick] = kept
        self.held_up = [arrival for arrival in self.held_up if arrival[1][0].src != p]
        return {receiver for receiver, connected in broken if connected}

    def reset(self, p: ProcessId, q: ProcessId) -> None:
        """The connection between these breaks: what is on it is lost, and what follows, until there
        is another one."""
        self.broken.update({(p, q), (q, p)})
        for tick, arrivals in self.packets.items():
            self.packets[tick] = [one for one in arrivals if not self._was_on_it(*one)]
        self.held_up = [one for one in self.held_up if not self._was_on_it(*one)]

    def _was_on_it(self, receiver: ProcessId, batch: tuple[Receive, ...]) -> bool:
        return batch[0].group == CLUSTER_GROUP and (batch[0].src, receiver) in self.broken

    def connect_again(self, p: ProcessId, q: ProcessId) -> None:
        """There is a new connection between these."""
        self.broken.difference_update({(p, q), (q, p)})

    def _draw(self, count: int) -> list[int]:
        end = self.next_fate + count
        if end > len(self.fates):
            rest = self.fates[self.next_fate :]
            self.fates = rest + self._fates(self.block + count)
            self.next_fate, end = 0, count
            self.block = min(2 * self.block, MOST_AT_ONCE)
        drawn = self.fates[self.next_fate : end]
        self.next_fate = end
        return drawn

    def _fates(self, count: int) -> list[int]:
        delays = self.model.delay.draw(self.rng, count)
        loss = self.model.loss
        doubled = loss + (1 - loss) * self.model.duplicate
        if not doubled:
            return delays
        draws = [self.rng.random() for _ in range(count)]
        return [
            delay if u >= doubled else 0 if u < loss else -delay
            for u, delay in zip(draws, delays, strict=True)
        ]

    def _suffer(self, receiver: ProcessId, batch: tuple[Receive], now: int, fate: int) -> None:
        if fate == 0:
            self.lost += 1
            return
        self._arrive(receiver, batch, now + abs(fate))
        if fate < 0:
            self.duplicated += 1
            self._arrive(receiver, batch, now + self.model.delay.draw(self.rng, 1)[0])

    def _arrive(self, receiver: ProcessId, batch: tuple[Receive], tick: int) -> None:
        if self.model.fifo:
            last = self.last_arrival[batch[0].src]
            last[receiver] = tick = max(tick, last[receiver])
        self.packets[tick].append((receiver, batch))

    def _reachable(self, src: ProcessId, receivers: tuple[ProcessId, ...]) -> tuple[ProcessId, ...]:
        assert self.side is not None
        side, mine = self.side, self.side[src]
        reached = tuple(p for p in receivers if side[p] == mine)
        self.cut += len(receivers) - len(reached)
        return reached
