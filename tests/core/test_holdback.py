"""The hold-back queue against its meaning: rescan it all until a whole pass delivers nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from machines import G
from ordercast.core.events import Receive, View
from ordercast.core.holdback import HoldBackQueue
from ordercast.protocols.vector import CausalVector, Stamped

Message = tuple[int, tuple[int, ...]]  # sender, vector


def test_what_waits_for_a_thing_comes_out_in_arrival_order_when_it_has_come() -> None:
    queue: HoldBackQueue[str, int] = HoldBackQueue()
    queue.hold("a", 1)
    queue.hold("b", 2)
    queue.hold("a", 3)
    assert len(queue) == 3
    assert sorted(queue) == [("a", 1), ("a", 3), ("b", 2)]
    assert queue.release("a") == [1, 3]
    assert queue.release("a") == []
    assert len(queue) == 1
    queue.clear()
    assert (len(queue), list(queue), queue.release("b")) == (0, [], [])


class Rescan:
    """The slide, read as it stands: after every arrival, scan until nothing moves."""

    def __init__(self, n: int) -> None:
        self.V = [0] * n
        self.queue: list[Message] = []
        self.delivered: list[Message] = []

    def arrive(self, message: Message) -> None:
        if message not in self.queue and message not in self.delivered:
            self.queue.append(message)
        moved = True
        while moved:
            moved = False
            for j, Vj in list(self.queue):
                others = all(Vj[k] <= self.V[k] for k in range(len(self.V)) if k != j)
                if Vj[j] == self.V[j] + 1 and others:
                    self.queue.remove((j, Vj))
                    self.delivered.append((j, Vj))
                    self.V[j] += 1
                    moved = True


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[Message], list[int]]:
    """Messages of a real causal history of n senders, and an order of arrival with repeats."""
    n = draw(st.integers(2, 4))
    clocks = [[0] * n for _ in range(n)]
    sent: list[Message] = []
    for _ in range(draw(st.integers(1, 12))):
        j = draw(st.integers(0, n - 1))
        if sent and draw(st.booleans()):  # j has seen some message, and all that came before it
            seen = draw(st.sampled_from(sent))[1]
            clocks[j] = [max(own, other) for own, other in zip(clocks[j], seen, strict=True)]
        clocks[j][j] += 1
        sent.append((j, tuple(clocks[j])))
    order = draw(st.permutations(range(len(sent))))
    repeats = draw(st.lists(st.integers(0, len(sent) - 1), max_size=4))
    keep = draw(st.integers(1, len(sent) + len(repeats)))
    return n, sent, (order + repeats)[:keep]


@given(histories())
def test_the_indexed_queue_delivers_exactly_what_a_rescan_delivers_after_every_arrival(
    history: tuple[int, list[Message], list[int]],
) -> None:
    n, sent, order = history
    machine, oracle = CausalVector(n), Rescan(n + 1)
    machine.step([View(G, 1, tuple(range(n + 1)), 0)])
    delivered: list[bytes] = []
    for i in order:
        j, Vj = sent[i]
        stamped = Stamped((*Vj, 0), 0)
        out = machine.step([Receive(j, G, 1, stamped, str(i).encode())])
        delivered += [d[4] for d in out.deliveries if not isinstance(d, View)]
        oracle.arrive((j, (*Vj, 0)))
        expected = [str(sent.index((j, Vj[:n]))).encode() for j, Vj in oracle.delivered]
        assert set(delivered) == set(expected)
        assert len(delivered) == len(expected)
        assert machine.V == oracle.V
        assert len(machine.held) == len(oracle.queue)
        assert not out.faults
