"""The parts of the sequencing service: what each owns, and what it is only lent."""

from __future__ import annotations

import pytest

from ordercast.core.events import Multicast, View
from ordercast.core.output import Output
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.part import Part
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.protocols.sequencing.table import TABLE

ORDERS = (Sequencing, SequencingHybrid, SequencingCausal, SequencingGlobal)
orders = pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.__name__)


def parts(service: SequencingService) -> list[Part]:
    sequencer = service.sequencer
    return [
        service.sender, sequencer, sequencer.contexts, service.member, service.delivery,
        service.changes,
    ]  # fmt: skip


def served(order: type[SequencingService]) -> SequencingService:
    """It is in two groups, numbers one of them, and has something to send to each."""
    service = order(1)
    service.install(View(1, 1, (1, 2), 1))
    service.install(View(2, 1, (1, 2, 3), 2))
    service.step([Multicast(1, b"a"), Multicast(2, b"b")])
    return service


@orders
def test_every_packet_has_one_part_that_takes_it(order: type[SequencingService]) -> None:
    assert set(served(order).takes) == set(TABLE) == set(order.headers)


@orders
def test_what_a_part_is_lent_is_not_its_state(order: type[SequencingService]) -> None:
    for part in parts(served(order)):
        assert not part.lent & part.state().keys()
        assert part.lent <= part.__dict__.keys(), "it names only what it is lent"
        owned = [value for value in part.state().values() if isinstance(value, Part)]
        assert owned in ([], [getattr(part, "contexts", None)])


@orders
def test_parts_of_a_copy_use_the_views_and_the_effects_of_the_copy(
    order: type[SequencingService],
) -> None:
    service = served(order)
    twin = service.copy()
    assert twin.fingerprint() == service.fingerprint()
    for part, other in zip(parts(twin), parts(service), strict=True):
        assert part is not other
        assert part.views is twin.views and part.out is twin.out
        assert part.timers is twin.timers and part.resilience is twin.resilience
    before = service.fingerprint()
    twin.step([Multicast(1, b"c")])
    twin.invariants()
    assert service.fingerprint() == before != twin.fingerprint()


@orders
def test_all_parts_write_to_the_effects_that_a_node_lends(order: type[SequencingService]) -> None:
    service = order(1)
    service.install(View(1, 1, (1, 2), 1))
    service.out = out = Output()
    assert all(part.out is out for part in parts(service))
    service.handle(Multicast(1, b"a"))
    assert [payload for *_, payload in out.transmits] == [b"a"]
    assert out.timers
