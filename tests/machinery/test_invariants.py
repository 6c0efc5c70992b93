"""What must always hold of the machines of families, links and gates: each rule can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from domains import RING, Overlap
from machines import Bench, G, bench, stacks
from ordercast.core.events import Multicast
from ordercast.core.protocol import Options
from ordercast.core.whereabouts import Whereabouts
from ordercast.process.given import GivenGroups
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.two_layered.group import TwoLayered

SLOW = Options(driver_consumes=True)  # applications take nothing of themselves


def _fifo() -> Any:
    """Member 2: frame 1 of 1 is delivered and not consumed, frame 3 waits for frame 2."""
    b = bench(Fifo, 1, 2, 3, options=SLOW)
    b.say(1, "a", "b", "c")
    b.bring(1, 2, text="a")
    b.bring(1, 2, text="c")
    return b.machines[2]


def _acknowledged() -> Any:
    """Member 1: of its three frames all have the first."""
    b = bench(Fifo, 1, 2, 3)
    b.say(1, "a")
    b.settle()
    b.say(1, "b", "c")
    return b.machines[1]


def _nak() -> Any:
    """Member 2: of 1 it has the first frame, and the third."""
    b = bench(PROTOCOLS["nak"], 1, 2, 3)
    b.say(1, "a", "b", "c")
    b.bring(1, 2, text="a")
    b.bring(1, 2, text="c")
    return b.machines[2]


def _cbcast() -> Any:
    """Process 3 of the ring: a frame for the second group waits for a holder of the first one."""
    b = Overlap(Cbcast, RING, Options())
    b.tell(3, 1, "a")
    b.tell(3, 2, "b")
    return b.machines[3]


def _two_layered() -> Any:
    """A gateway that was told of the third message, and has the first."""
    machines = {p: TwoLayered(p, Options(delivery_level="ack")) for p in (1, 2, 3)}
    for machine in machines.values():
        machine.locate({p: Whereabouts("here") for p in machines})
    b = Bench(dict(machines))
    b.view(1, 2, 3)
    b.say(2, "a", "b", "c")
    b.bring(2, 1, text="a")
    b.bring(2, 1, text="c")
    return b.machines[1]


def _process(resilience: int | None = 1) -> Any:
    b: Bench = stacks(Fifo, 1, 2, 3, network="N0", options=Options(resilience=resilience))
    b.view(1, 2, 3)
    b.step(1, Multicast(G, b"a"), Multicast(G, b"b"))
    return b.machines[1]


def _link() -> Any:
    """Its first packet lacks at the other side."""
    found = _process(None)
    assert isinstance(found, GivenGroups)
    return found


def _gate() -> Any:
    """Frames that nobody else is known to hold wait at its gate."""
    return _process()


def stability(machine: Any) -> Any:
    return machine.stability[G]


def link(process: Any) -> Any:
    return process.links.links[2]


def gate(process: Any) -> Any:
    return process.groups.gates.of[G]


BROKEN: list[tuple[str, Callable[[], Any], Callable[[Any], object]]] = [
    ("the lowest mark is known", _acknowledged, lambda m: stability(m).A.marks.update({2: 0})),
    ("what is stable is forgotten", _acknowledged,
     lambda m: stability(m).kept[1].update({1: stability(m).kept[1][2]})),
    ("a number has one frame", _fifo,
     lambda m: stability(m).kept[1].update({4: stability(m).kept[1][1]})),
    ("only what was consumed here is stable", _fifo, lambda m: (
        stability(m).stable.update({1: 1}), stability(m).kept[1].clear())),
    ("what some member may lack is kept", _acknowledged,
     lambda m: stability(m).kept[1].pop(2)),
    ("only what was consumed is acknowledged", _fifo, lambda m: stability(m).owed.update({1: 1})),
    ("what is not consumed yet is kept", _fifo, lambda m: stability(m).kept[1].clear()),
    ("told <= stable <= sent", _acknowledged, lambda m: setattr(stability(m), "told", 2)),
    ("stable is what all members have consumed", _acknowledged,
     lambda m: (stability(m).stable.update({1: 2}), stability(m).kept[1].pop(2))),
    ("only what was sent is acknowledged", _acknowledged,
     lambda m: stability(m).A.marks.update({2: 9})),
    ("only what was sent is kept", _acknowledged, lambda m: stability(m).kept[1].update({
        4: replace(stability(m).kept[1][2], n=4)})),
    ("only what has come was consumed", _fifo, lambda m: (
        setattr(stability(m).taken[1], "mark", 2), stability(m).kept[1].update({
            2: replace(stability(m).kept[1][1], n=2)}))),
    ("one account for each group", _cbcast, lambda m: m.received.pop(1)),
    ("only what has come was consumed", _cbcast,
     lambda m: (m.stability[1].taken[4].__setattr__("mark", 1),
                m.stability[1].kept[4].update({1: replace(m.stability[1].kept[3][1], origin=4)}))),
    ("who asked is told as soon as all is here", _cbcast, lambda m: m.promised.update({(1, 4): 0})),
    ("one asks only about what was sent", _cbcast, lambda m: m.send_rule.asked.update({1: 2})),
    ("only members hold frames", _cbcast, lambda m: m.send_rule.held_by[1].update({9: 1})),
    ("what may leave has left", _cbcast, lambda m: m.send_rule.safe.update({1: 1})),
    ("consumed <= delivered <= sent", _nak, lambda m: m.C.update({1: 2})),
    ("what all have was sent", _nak, lambda m: m.A[1].marks.update({1: 9})),
    ("own marks are counted", _nak, lambda m: m.A[1].marks.update({2: 2})),
    ("what is in turn is delivered", _nak, lambda m: m.store[1].update({2: b"b"})),
    ("what all have is forgotten", _nak, lambda m: m.store[1].update({0: b""})),
    ("only what was sent is here", _nak, lambda m: m.store[1].update({9: b"i"})),
    ("what some member may lack is kept", _nak, lambda m: m.store[1].pop(1)),
    ("only what was sent exists", _nak, lambda m: m.top.update({2: 1})),
    ("what is not consumed yet was handed over", _nak, lambda m: m.handed.append(1)),
    ("only what was accepted is forgotten", _two_layered,
     lambda m: setattr(m.local, "low", (1, 9, 1))),
    ("only what exists was accepted", _two_layered, lambda m: m.local.rsq.__setitem__(1, 9)),
    ("what all have taken is forgotten", _two_layered,
     lambda m: m.local.store[1].update({0: m.local.store[1][1]})),
    ("what some member may lack is kept", _two_layered, lambda m: m.local.store[1].pop(1)),
    ("what waits for nothing was accepted", _two_layered,
     lambda m: m.local.store[1].update({2: ((1, 3, 1), *m.local.store[1][1][1:])})),
    ("what others say that they accepted exists", _two_layered,
     lambda m: m.local.ack.__setitem__(2, (1, 9, 1))),
    ("the least mark of each column is known", _two_layered,
     lambda m: m.tallies[0].here.__setitem__(1, 0)),
    ("its own word counts", _two_layered, lambda m: m.tallies[0].mine.__setitem__(0, 9)),
    ("only what was accepted is consumed", _two_layered, lambda m: m.taken.__setitem__(1, 9)),
    ("all are only as far as this process", _two_layered,
     lambda m: m.reached.__setitem__(0, (1, 9, 1))),
    ("stages follow", _two_layered, lambda m: (
        m.taken.__setitem__(1, 2), m.reached.__setitem__(2, (1, 2, 1)))),
    ("what waits for its level is kept", _two_layered, lambda m: m.queue.append((2, 1))),
    ("what has its level is delivered", _two_layered,
     lambda m: m.reached.__setitem__(slice(0, 2), [(1, 2, 1), (1, 2, 1)])),
    ("what is not acknowledged is kept", _link, lambda p: link(p).unacked.pop(2)),
    ("only what was sent is kept", _link, lambda p: (
        link(p).unacked.clear(), link(p).unacked.update({1: None, 3: None}))),
    ("what is in turn was handed up", _link, lambda p: link(p).ahead.update({1: None})),
    ("what waits came before one that is missing", _link,
     lambda p: link(p).ahead.update({0: None})),
    ("the peer lacks only what was sent", _link, lambda p: setattr(link(p), "top", 9)),
    ("the others were told what is held here", _gate, lambda p: gate(p).untold.add(G)),
    ("words are bounded", _gate, lambda p: setattr(gate(p).groups[G], "limit", -1)),
    ("what waits is of an era that has begun", _gate,
     lambda p: setattr(gate(p).groups[G], "era", 0)),
    ("what waits is held here", _gate, lambda p: gate(p).groups[G].here.clear()),
    ("what enough hold was handed over", _gate,
     lambda p: setattr(gate(p).groups[G], "durability", 0)),
    ("who waits will ask", _gate, lambda p: setattr(gate(p), "watched", None)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "made", "spoil"), BROKEN, ids=[f"{made.__name__}: {rule}" for rule, made, _ in BROKEN]
)
def test_a_state_that_is_put_wrong_is_noticed(
    rule: str, made: Callable[[], Any], spoil: Callable[[Any], object]
) -> None:
    machine = made()
    machine.invariants()
    spoil(machine)
    with pytest.raises(AssertionError) as caught:
        machine.invariants()
    assert str(caught.value).splitlines()[0] == rule
