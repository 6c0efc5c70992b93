"""The faults of a network, as they overlap in a plan: each is begun, and ended by itself.

Cuts are made by switches of their own for each side. Where one direction is cut, or packets are
delayed or lost, all traffic goes through the relay instead, which does the cuts as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from typing import Any

from netlab.namespaces import Network
from netlab.shaping import Relay

Way = tuple[str, str]  # from whom, to whom

RELAYED = ("cut one way", "slow link", "loss")  # kinds of fault that need the relay
CUTS = ("cut one", "cut coordinator", "cut in halves", "flapping", "cut one way")
SHAPES = ("slow link", "loss")


class FaultyNetwork:
    """A network with the faults that are in force now."""

    def __init__(self, network: Network, relay: Relay | None) -> None:
        self._network = network
        self._relay = relay
        self._cuts: dict[int, set[Way]] = {}
        self._shapes: dict[int, tuple[tuple[str, ...], dict[str, Any]]] = {}

    def cut(self, number: int, who: Iterable[str], *, one_way: bool = False) -> None:
        """Fault `number`: nothing passes from these to the others, nor back unless `one_way`."""
        side = set(who)
        ways = {
            w for w in permutations(self._network.members, 2) if (w[0] in side) > (w[1] in side)
        }
        self._cuts[number] = ways if one_way else ways | {(to, frm) for frm, to in ways}
        self._apply_cuts()

    def shape(self, number: int, who: tuple[str, ...], how: dict[str, Any]) -> None:
        """Fault `number`: the packets of these are treated so."""
        self._shapes[number] = (who, how)
        self._apply_shapes()

    def mend(self, number: int) -> None:
        """That fault is over."""
        if self._cuts.pop(number, None) is not None:
            self._apply_cuts()
        if self._shapes.pop(number, None) is not None:
            self._apply_shapes()

    def reset(self, name: str) -> None:
        """Every TCP connection of that member is reset, as by a firewall that forgot it."""
        self._network.inside(name).run("ss", "-K", "-t", "state", "established")

    def _apply_cuts(self) -> None:
        ways = set[Way]().union(*self._cuts.values())
        if self._relay is None:
            self._partition(ways)
            return
        self._relay.mend()
        for frm in {way[0] for way in ways}:
            self._relay.cut([frm], [to for one, to in ways if one == frm])

    def _partition(self, ways: set[Way]) -> None:
        sides: list[list[str]] = []
        for name in self._network.members:
            for side in sides:
                if (name, side[0]) not in ways:
                    side.append(name)
                    break
            else:
                sides.append([name])
        if len(sides) > 1:
            self._network.partition(*sides)
        else:
            self._network.heal()

    def _apply_shapes(self) -> None:
        assert self._relay is not None
        self._relay.shape()
        for who, how in self._shapes.values():
            self._relay.shape(**how, frm=list(who))
            self._relay.shape(**how, to=list(who))
