"""The scenes that are searched: a crash at any moment of a hand-over, and the race of two joins.

Three nodes (four with daemons), of which the first coordinates; one hand-over; one or two messages.
The one that is struck crashes at any moment, or is only taken for dead.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import get_args

from ordercast.core.ids import ProcessId
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.service import SequencingService
from placings.scene import Doing, Fate, Group, Scene, joins, moves, says

Protocol = type[SequencingService]
Named = Iterator[tuple[str, Scene]]

ORDERS: tuple[Protocol, ...] = (Sequencing, SequencingHybrid, SequencingCausal, SequencingGlobal)
FATES: tuple[Fate, ...] = get_args(Fate)
NODES = (1, 2, 3)
ROLES = {"a bystander": (2, 3), "the source": (1, 2), "the destination": (2, 1)}
"""Who coordinates, and so from where to where a group is handed over"""

IN_TWO_GROUPS: dict[str, tuple[Doing, ...]] = {
    "a reply in the other group": (says(1, 1, "m1"), says(3, 2, "m2", after="m1")),
    "a member speaks in both": (says(1, 1, "m1"), says(1, 2, "m2")),
    "the source speaks in both": (says(2, 1, "m1"), says(2, 2, "m2")),
}


def one_group(
    protocol: Protocol,
    sayings: tuple[Doing, ...],
    struck: ProcessId | None,
    fate: Fate = "crash",
    *,
    source: ProcessId = 2,
    to: ProcessId = 3,
) -> Scene:
    """All three are members of a group that is handed over."""
    doings = (*sayings, moves(1, 1, to))
    return Scene(protocol, NODES, {1: Group(NODES, source)}, doings, struck, fate)


def two_groups(
    protocol: Protocol, sayings: tuple[Doing, ...], struck: ProcessId, fate: Fate = "crash"
) -> Scene:
    """All are members of two groups. The first is handed over, and the other if it must be."""
    groups = {g: Group(NODES, 2) for g in (1, 2)}
    return Scene(protocol, NODES, groups, (*sayings, moves(1, 1, 3)), struck, fate)


def spoken_of(protocol: Protocol, struck: ProcessId, fate: Fate = "crash") -> Scene:
    """1 numbers two groups, and is in neither. 3 speaks in both, and then gets the first, or both:
    what 3 alone has delivered was spoken of."""
    groups = {g: Group((2, 3), 1) for g in (1, 2)}
    doings = (says(3, 1, "m1"), says(3, 2, "m2"), moves(1, 1, 3))
    return Scene(protocol, NODES, groups, doings, struck, fate)


def race(
    protocol: Protocol,
    sayings: tuple[Doing, ...] = (),
    struck: ProcessId | None = None,
    fate: Fate = "crash",
) -> Scene:
    """2 is in one group and wants into the other, 3 the other way round; then the two groups must
    be together, but for the hybrid order. 1 is in both, unless they must be together then."""
    both = () if protocol.together == "weak" else (1,)
    groups = {1: Group((*both, 2), 2), 2: Group((*both, 3), 3)}
    wishes = (joins(3, 1, protocol), joins(2, 2, protocol))
    return Scene(protocol, NODES, groups, (*wishes, *sayings), struck, fate)


def everything() -> Named:
    """All of them, the small ones first."""
    yield from _hand_overs()
    yield from _races()
    yield from _others()
    yield from _larger()


def _hand_overs() -> Named:
    for protocol, (who, (source, to)), p in product(ORDERS, ROLES.items(), NODES):
        name = f"{protocol.declaration.name}, {who} coordinates, {p} speaks"
        sayings = (says(p, 1, "m1"),)
        for struck, fate in product(NODES, FATES):
            scene = one_group(protocol, sayings, struck, fate, source=source, to=to)
            yield f"hand-over: {name}; {fate} of {struck}", scene


def _races() -> Named:
    for protocol in ORDERS:
        name = f"race: {protocol.declaration.name}"
        yield f"{name}, nobody speaks", race(protocol)
        yield f"{name}, one speaks", race(protocol, (says(2, 1, "m1"),))
        for struck, fate in product(NODES, FATES):
            yield f"{name}, nobody speaks; {fate} of {struck}", race(protocol, (), struck, fate)


def _others() -> Named:
    for protocol, struck in product(ORDERS, NODES):
        name = f"{protocol.declaration.name}; crash of {struck}"
        guest = {1: Group((1, 2), 2, guests=(3,))}
        for to in (1, 3):
            doings = (says(3, 1, "m1"), moves(1, 1, to))
            yield (
                f"guest speaks, hand-over to {to}: {name}",
                Scene(protocol, NODES, guest, doings, struck),
            )
        doings = (says(1, 1, "m1"), moves(1, 1, 3))
        yield (
            f"all is acknowledged: {name}",
            Scene(
                protocol,
                NODES,
                {1: Group(NODES, 2)},
                doings,
                struck,
                options=Options(ack_every=1),
                marks=True,
            ),
        )
    for protocol, struck in product(ORDERS, (1, 2, 8, 9)):
        yield (
            f"daemons: {protocol.declaration.name}; crash of {struck}",
            Scene(
                protocol,
                (1, 2, 8, 9),
                {1: Group((1, 2), 8)},
                (says(1, 1, "m1"), moves(1, 1, 9)),
                struck,
                daemons=(8, 9),
            ),
        )


def _larger() -> Named:
    for fate, protocol, struck in product(FATES, ORDERS, NODES):
        name = f"{protocol.declaration.name}; {fate} of {struck}"
        for says_what, sayings in IN_TWO_GROUPS.items():
            scene = two_groups(protocol, sayings, struck, fate)
            yield f"two groups: {says_what}, {name}", scene
        sayings = (says(1, 1, "m1"), says(2, 1, "m2"))
        yield f"two messages: {name}", one_group(protocol, sayings, struck, fate)
        yield f"the next sequencer has spoken: {name}", spoken_of(protocol, struck, fate)
    for protocol in ORDERS:
        sayings = (says(2, 1, "m1"), says(3, 2, "m2"))
        yield f"race: {protocol.declaration.name}, both speak", race(protocol, sayings)
