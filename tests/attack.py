"""A cluster on a bench: packets are held up or lost, nodes crash, by hand.

Group H is numbered by 5, group G elsewhere. 2 is in both: it must not have X, which was said in G,
without what X comes after.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from machines import Bench, Packet
from ordercast.core.events import Multicast
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.membership.cluster_headers import CLUSTER_GROUP, Part
from ordercast.membership.placing_headers import Inherit, InheritEntry
from ordercast.membership.standing import Ask, Broken, ClusterOptions, Command, Migrate, Quit
from ordercast.protocols.sequencing.orders import SequencingHybrid
from ordercast.protocols.sequencing.part import GroupPart
from ordercast.protocols.sequencing.service import SequencingService
from placings import scene
from placings.scene import Group, Scene

H, G = 1, 2
NODES = (1, 2, 3, 4, 5, 6)
MORE_NODES = (*NODES, 7)
Which = Callable[[Packet], bool]


def nothing(packet: Packet) -> bool:
    return False


class Attack(Bench):
    """A cluster whose packets can be held up, or lost."""

    def __init__(
        self,
        groups: dict[GroupId, Group],
        daemons: tuple[ProcessId, ...],
        nodes: tuple[ProcessId, ...] = NODES,
        *,
        protocol: type[SequencingService] = SequencingHybrid,
        options: Options = Options(),  # noqa: B008
    ) -> None:
        self.entry = scene.entry_of(H, protocol)
        self.stacks = scene.first_stacks(
            Scene(protocol, nodes, groups, (), daemons=daemons, options=options)
        )
        super().__init__(dict(self.stacks))
        for p, stack in self.stacks.items():
            self.timers[p][CLUSTER_GROUP, "tick"] = ClusterOptions().heartbeat_ms
            for g in groups:
                view = stack.view(g)
                if view is not None and p in view.members:
                    self._record_delivery(p, view)

    def part(self, p: ProcessId) -> GroupPart:
        service = self.stacks[p].protocols[H]
        assert isinstance(service, SequencingService)
        return service.parts[H]

    def run_without(self, held_up: Which = nothing) -> list[Packet]:
        """Until nothing is under way; the packets that are held up."""
        found: list[Packet] = []
        while True:
            for packet in [p for p in self.flight if held_up(p)]:
                self.flight.remove(packet)
                found.append(packet)
            if not self.flight:
                return found
            self.arrive(self.flight[0])

    def say_to(self, p: ProcessId, g: GroupId, text: str, held_up: Which = nothing) -> None:
        self.step(p, Multicast(g, text.encode()))
        self.run_without(held_up)

    def join(self, p: ProcessId, held_up: Which = nothing, part: Part = "member") -> None:
        self.ask(p, part)
        self.run_without(held_up)

    def ask(self, p: ProcessId, part: Part = "member") -> None:
        """As a node does that joins: the group is open when it is asked for."""
        self.stacks[p].open_group(self.entry)
        self.command(p, Ask(self.entry, part))

    def command(self, p: ProcessId, *commands: Command) -> None:
        """The driver of p speaks."""
        self.step(p, *commands)  # type: ignore[arg-type]

    def leave(self, p: ProcessId, held_up: Which = nothing) -> list[Packet]:
        self.command(p, Quit(H))
        return self.run_without(held_up)

    def migrate(self, to: ProcessId, held_up: Which = nothing) -> list[Packet]:
        self.command(1, Migrate(H, to))
        return self.run_without(held_up)

    def end(self, dead: ProcessId) -> None:
        """This one crashes, and the others go on."""
        self.crash(dead)
        self.command(1 if dead != 1 else 2, Broken(dead))
        self.carry()
        self.wait(8)

    def close_if_left(self, p: ProcessId) -> bool:
        """As a node does that has had its last view: False if it is needed."""
        stack = self.stacks[p]
        view = stack.view(H)
        outside = view is not None and p not in view.senders and stack.is_out(H)
        if not outside or stack.leads(H) or stack.keeps_open(H) or H in stack.wants:
            return False
        stack.close(H)
        for key in [key for key in self.timers[p] if key[0] == H]:
            del self.timers[p][key]
        return True

    def wait(self, rounds: int = 20) -> None:
        for _ in range(rounds):
            self.go_on(rounds=1)


def to_2(packet: Packet) -> bool:
    """Nothing of H comes to 2."""
    return packet.dst == 2 and packet.receive.group == H


def is_book(packet: Packet) -> bool:
    return isinstance(packet.header, Inherit | InheritEntry)


def plain(*, guests: tuple[ProcessId, ...] = ()) -> Attack:
    return Attack({H: Group((2,), 5, guests=guests), G: Group((2, 3, 4), 6)}, (5, 6))


def spoken_of() -> Attack:
    """2 said M in H, and 3, which has it, X in G. 2 does not have M itself."""
    b = Attack({H: Group((2, 3), 5), G: Group((2, 3, 4), 4)}, (4, 5, 6, 7), MORE_NODES)
    b.say_to(2, H, "M", to_2)
    b.say_to(3, G, "X", to_2)
    return b


def with_resilience(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """Of the groups that are made from now on."""
    entry_of = scene.entry_of
    with_k = lambda g, protocol: msgspec.structs.replace(entry_of(g, protocol), durability=k)  # noqa: E731
    monkeypatch.setattr(scene, "entry_of", with_k)
