"""Whatever a peer says, a node does not end, and no other peer is blamed: the short form."""

from __future__ import annotations

from fuzz.campaign import campaign
from fuzz.known import unexplained
from fuzz.moments import STATES
from ordercast.protocols.registry import PROTOCOLS

FRAMES = 20_000
SECONDS = 600.0  # not to be reached: the number of frames decides


def test_a_lie_in_any_state_of_any_protocol_is_at_worst_the_fault_of_the_liar():
    book = campaign(FRAMES, SECONDS, runs=len(PROTOCOLS), moments=3, trials=4)
    found = unexplained(list(book.findings.values()))
    assert not found, "\n".join(
        f"{f.kind} {f.place} {f.says} {f.witness}: python -m fuzz --frames 1 --seed {f.run}"
        for f in found
    )
    assert book.total >= FRAMES and {protocol for protocol, _ in book.frames} == set(PROTOCOLS)
    assert {state for _, state in book.frames} == set(STATES)
    assert book.tally.faults > FRAMES // 20
