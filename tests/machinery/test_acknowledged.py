"""What the protocols without a sequencer share: acknowledgements, and who may speak."""

from __future__ import annotations

import msgspec
import pytest

from machines import G
from ordercast.core.events import Receive, View
from ordercast.core.protocol import OrderingProtocol
from ordercast.machinery.stability import Ack, Stable
from ordercast.protocols.basic import Basic, BasicData
from ordercast.protocols.fifo import Fifo, FifoData
from ordercast.protocols.reliable import Reliable, ReliableData
from ordercast.protocols.vector import CausalVector, Stamped

DATA = [
    (Basic, BasicData(1, 0)),
    (Fifo, FifoData(1, 0)),
    (Reliable, ReliableData(2, 1, 0)),
    (CausalVector, Stamped((0, 1), 0)),
]


@pytest.mark.parametrize(("protocol", "data"), DATA)
@pytest.mark.parametrize("kind", ["data", "Ack", "Stable"])
def test_a_leader_that_is_no_member_may_not_speak_and_the_rest_of_the_step_counts(
    protocol: type[OrderingProtocol], data: msgspec.Struct, kind: str
) -> None:
    header = {"data": data, "Ack": Ack(0), "Stable": Stable(0)}[kind]
    machine = protocol(1)
    machine.step([View(G, 1, (1, 2), leader=0)])
    out = machine.step([Receive(0, G, 1, header, b"from 0"), Receive(2, G, 1, data, b"from 2")])
    assert out.faults == [(0, "process 0 is not a member of the view")]
    assert [d[4] for d in out.deliveries if isinstance(d, tuple)] == [b"from 2"]
