"""Entries of a header that no honest peer can send: refused, and nothing waits for them."""

from __future__ import annotations

import msgspec
import pytest

from ordercast.core.events import Receive, View
from ordercast.core.protocol import Options
from ordercast.machinery.block_order import BlockData
from ordercast.machinery.domain import DomainProtocol
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.cbcast import CausalData, Cbcast
from ordercast.protocols.fast import Fast, FastData
from ordercast.protocols.fast_p import FastP, FastPData
from ordercast.protocols.relative import Relative, RelativeData
from ordercast.protocols.slow import Slow

X, Y = 1, 2
VIEWS = (View(X, 1, (1, 2, 3), 1), View(Y, 1, (1, 2), 1))

FALSE = [
    (Cbcast, CausalData(1, 0, (Y, 3, 1)), "does not send in group 2"),
    (Fast, FastData(1, 5, 0, (Y, 3, 1)), "does not send in group 2"),
    (Fast, FastData(1, 5, 0, (X, 3, 5)), "before a message of block 5"),
    (Fast, FastData(1, 5, 0, (X, 3, -1)), "before a message of block 5"),
    (FastP, FastPData(1, 5, 0, (3, 5)), "before a message of block 5"),
    (FastP, FastPData(1, 5, 0, (-3, 4)), "before a message of block 5"),
    (Relative, RelativeData(1, 5, 0, (9, 1), ()), "does not send in group 1"),
    (Relative, RelativeData(1, 5, 0, (), (Y, 5)), "before a message of block 5"),
    (Relative, RelativeData(1, 5, 0, (), (-1, 2)), "before a message of block 5"),
]


@pytest.mark.parametrize(("protocol", "header", "reason"), FALSE)
def test_a_false_entry_is_a_fault_and_holds_nothing_back(
    protocol: type[DomainProtocol], header: msgspec.Struct, reason: str
) -> None:
    machine = protocol(1)
    machine.step(VIEWS)
    out = machine.step([Receive(2, X, 1, header, b"m")])
    assert [(peer, reason in said) for peer, said in out.faults] == [(2, True)]
    assert machine.held_back() == []


@pytest.mark.parametrize("protocol", [Slow, BlockTotal])
def test_a_sender_reaches_a_limit_of_its_own_and_another_is_not_blamed(
    protocol: type[DomainProtocol],
) -> None:
    machine = protocol(1, Options(max_held=2))
    machine.step([View(X, 1, (1, 2, 3, 4), 1)])
    frames = [Receive(2, X, 1, BlockData(n, n, 0), b"m") for n in (1, 2, 3, 4)]
    out = machine.step(frames)  # 3 and 4 are silent: what 2 says waits
    assert {peer for peer, _ in out.faults} == {2}
    assert "max_held" in out.faults[0][1]
    assert machine.step([Receive(3, X, 1, BlockData(1, 1, 0), b"n")]).faults == []
