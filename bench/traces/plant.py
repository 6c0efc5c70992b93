"""Where in a run its faults are planted."""

from __future__ import annotations

from itertools import pairwise

from bench.traces.faults import AT_THE_END, FAULTS, Outline
from bench.traces.stage import ACTS, Fault, Stage
from bench.traces.world import World


def plant(world: World) -> dict[str, Outline]:
    """Plant what the shape asks for, evenly over the run; what each fault is about."""
    names = [name for name in FAULTS if name in world.shape.faults]
    inside = [name for name in names if name not in AT_THE_END]
    found: dict[str, Outline] = {}
    for name, first in zip(inside, _places(world, len(inside)), strict=True):
        people = world.rng.permutation(len(world.steady)).tolist()
        world.silence(people[:4], first, first + (ACTS + 1) * world.span)
        found[name] = FAULTS[name](Stage(world, len(found), first, people))
    # All are sent at once, by different processes, before any is delivered.
    people = list(world.steady)
    for place, name in enumerate(name for name in names if name in AT_THE_END):
        stage = Stage(world, len(found), world.count + world.span + place, people)
        found[name] = FAULTS[name](stage)
        people = people[2:] + people[:2]
    return found


def _places(world: World, wanted: int) -> list[int]:
    """The first places of so many windows in which nothing else happens."""
    length = (ACTS + 1) * world.span
    free = [
        first
        for turn, next_turn in pairwise(world.turns)
        for first in range(turn + 1, next_turn - length, length)
    ]
    if len(free) < wanted:
        raise ValueError(f"{wanted} faults need more events: there is room for {len(free)}")
    return [free[number * len(free) // max(wanted, 1)] for number in range(wanted)]


def named(world: World, messages: dict[int, str], outlines: dict[str, Outline]) -> list[Fault]:
    """The same with names in the place of numbers."""
    return [
        Fault(
            name=name,
            breaks=one.breaks,
            messages=frozenset(messages[m] for m in one.messages),
            missing=frozenset((world.names[q], messages[m]) for q, m in one.missing),
            processes=frozenset(world.names[q] for q in one.processes),
            group=None if one.group is None else world.groups[one.group].name,
            chain=tuple(messages[m] for m in one.chain),
        )
        for name, one in outlines.items()
    ]
