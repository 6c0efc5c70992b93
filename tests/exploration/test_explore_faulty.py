"""The explorer finds what is wrong with a machine, and shows it in a short schedule."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from explored import scenario
from faulty_machines import sequenced, sequencing, unsequenced
from faulty_machines.unchecked import unchecked
from ordercast.core.events import Receive
from ordercast.core.ids import GroupId
from ordercast.exploration import Saying, Scenario, Schedule, explore, one_group, replay
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.reliable import Reliable
from ordercast.protocols.sequencer_pb import SequencerPB
from ordercast.protocols.vector import CausalVector

THREE_IN_A_ROW = Scenario(
    protocol=unsequenced.WakesOnlyOnce,
    processes=2,
    groups=one_group(2),
    script=(Saying(0, 1), Saying(0, 1), Saying(0, 1)),
)
CRASH = {"crash": True, "messages": 1}


class VectorCalledGlobal(CausalVector):
    """One vector per group, sold as causal order across groups."""

    declaration = msgspec.structs.replace(CausalVector.declaration, promises=("causal.global",))


class Suspicious(Fifo):
    """Blames whoever sends a second frame."""

    def receive(self, packet: Receive) -> None:
        if packet.payload == b"m2":
            self.out.faults.append((packet.src, "a second frame"))
        super().receive(packet)


class Breaks(Fifo):
    """Asserts that frames come in order."""

    def receive(self, packet: Receive) -> None:
        assert packet.payload != b"m2" or self.R[packet.src] == 1, "out of order"
        super().receive(packet)


class CountsTwice(Fifo):
    """Says what must always hold of it, and does not keep it: its second frame is counted twice."""

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        super().on_multicast(g, m)
        self.said = getattr(self, "said", 0) + 1 + (m == b"m2")

    def invariants(self) -> None:
        if getattr(self, "said", 0) != self.stability[1].S:
            raise AssertionError("every frame is counted once")


class Invents(Fifo):
    """Delivers something that nobody said, once its own frame is stable."""

    def on_timer(self, g: GroupId, name: str) -> None:
        super().on_timer(g, name)
        if name == "stable":
            self.out.deliveries.append((g, self.me, 9, 0, b"rumour"))


class Repeats(Fifo):
    """Delivers its own frame again once it is stable."""

    def on_timer(self, g: GroupId, name: str) -> None:
        super().on_timer(g, name)
        if name == "stable":
            self.out.deliveries.append((g, self.me, 1, 0, b"m1"))


FOUND: dict[str, tuple[str, Scenario]] = {
    "FIFO without holding back": (
        "fifo.group",
        scenario(unsequenced.AcceptsAnyLaterNumber, "burst"),
    ),
    "hold-back queue wakes once": ("agreement", THREE_IN_A_ROW),
    "vector counts received": ("causal.group", scenario(unsequenced.CountsReceived, "burst")),
    "own copy is tested": ("validity", scenario(unsequenced.TestsItsOwnCopy, "free", 1)),
    "one vector per group": (
        "causal.global",
        scenario(VectorCalledGlobal, "replies", overlap=True),
    ),
    "one vector per group, in a ring": (
        "causal.global",
        Scenario(
            protocol=VectorCalledGlobal,
            groups=((0, 1), (1, 2), (2, 0)),
            script=(Saying(0, 3), Saying(0, 1), Saying(1, 2, after=1)),
        ),
    ),
    "PB numbers on arrival": ("fifo.group", scenario(sequenced.NumbersOnArrivalPB, "burst")),
    "BB numbers on arrival": ("fifo.group", scenario(sequenced.NumbersOnArrivalBB, "burst")),
    "repeats are numbered again": (
        "no_duplication",
        scenario(sequenced.NumbersRepeatsAgain, "burst", 1, duplicates=1),
    ),
    "no FETCH": ("agreement", scenario(sequenced.WithoutFetch, "burst", 2, losses=1)),
    "no STATUS": ("agreement", scenario(sequenced.WithoutStatus, "free", 1, losses=1)),
    "retry under a fresh id": (
        "no_duplication",
        scenario(sequenced.RetriesUnderAFreshId, "burst", 1, losses=1),
    ),
    "T2 as equality": (
        "agreement",
        Scenario(
            protocol=sequencing.WaitsForTheSameSet,
            groups=((0, 1), (2, 1)),
            script=(Saying(0, 1), Saying(2, 2)),
        ),
    ),
    "S2 called global": (
        "total.global",
        Scenario(
            protocol=sequencing.PairwiseCalledGlobal,
            groups=((0, 1), (1, 2), (2, 0)),
            script=(Saying(0, 1), Saying(1, 2), Saying(2, 3)),
        ),
    ),
    "basic called reliable": (
        "agreement",
        scenario(unsequenced.BasicCalledReliable, "free", expect=("agreement",), **CRASH),
    ),
    "relay after delivery": (
        "agreement.uniform",
        scenario(
            unsequenced.DeliversBeforeRelaying, "free", expect=("agreement.uniform",), **CRASH
        ),
    ),
    "blames the innocent": ("no_fault", scenario(Suspicious, "burst")),
    "an assertion fails": ("no_error", scenario(Breaks, "burst")),
    "an invariant is broken": ("no_error", scenario(CountsTwice, "burst")),
    "invents a message": ("no_creation", scenario(Invents, "free", 1, rounds_after=4)),
    "delivers again later": ("no_duplication", scenario(Repeats, "free", 1, rounds_after=4)),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_wrong_is_found_and_the_schedule_shows_it_again(name: str, tmp_path: Path) -> None:
    broken, wrong = FOUND[name]
    if broken != "no_error":
        wrong = msgspec.structs.replace(wrong, protocol=unchecked(wrong.protocol))
    found = explore(wrong, limit=100_000)
    assert found.violated == (broken,)
    assert not found.complete
    assert found.schedule is not None
    assert found.schedule.property == broken

    file = tmp_path / "schedule.json"
    found.schedule.write(file)
    read = Schedule.read(file)
    assert read == found.schedule
    *before, last = replay(read.scenario(wrong.protocol), read.steps)
    assert all(step.violation is None for step in before)
    assert last.violation is not None
    assert (last.violation.property, last.violation.sentence) == (broken, read.sentence)


def test_the_schedule_is_a_shortest_one() -> None:
    found = explore(scenario(unsequenced.AcceptsAnyLaterNumber, "burst"))
    assert found.schedule is not None
    assert found.schedule.steps == (
        "p2 multicasts m1 to g1",
        "p2 multicasts m2 to g1",
        "packet g1 FifoData(n=2, stable=0) m2 p2 -> p0 arrives",
    )


def test_a_replay_says_what_is_delivered_and_what_is_held_back_and_why() -> None:
    steps = (
        "p2 multicasts m1 to g1",
        "p2 multicasts m2 to g1",
        "packet g1 FifoData(n=2, stable=0) m2 p2 -> p0 arrives",
        "packet g1 FifoData(n=1, stable=0) m1 p2 -> p0 arrives",
    )
    said, _, held, released = replay(scenario(Fifo, "burst"), steps)
    assert said.logged == ("p2 says m1", "p2 delivers m1")
    assert held.logged == ()
    assert held.held_back == ("p0 holds back m2 of p2: it waits for frame 1 of p2 in g1",)
    assert released.logged == ("p0 delivers m1", "p0 delivers m2")
    assert released.held_back == ()
    assert released.violation is None


def test_a_step_that_cannot_happen_is_refused_with_those_that_can() -> None:
    with pytest.raises(ValueError, match=r"step 1, 'p1 crashes', cannot .*\n  p0 multicasts m1"):
        list(replay(scenario(Fifo, "free"), ["p1 crashes"]))


def test_a_file_that_is_no_schedule_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"protocol": "fifo"}')
    with pytest.raises(ValueError, match=r"other\.json is no schedule .* `processes`"):
        Schedule.read(file)


def test_agreement_holds_after_a_crash_where_all_relay_first() -> None:
    right = scenario(Reliable, "burst", 2, crash=True, expect=("agreement",))
    assert explore(right).complete


def test_a_run_in_which_the_crash_does_not_come_gets_all_its_rounds_of_timers() -> None:
    # A lost request is repeated in the second round; after a crash there is only one.
    small = scenario(SequencerPB, "burst", 1, losses=1, crash=True)
    assert explore(small).complete
    assert explore(msgspec.structs.replace(small, rounds=1)).violated == ("validity",)


def test_a_limit_that_is_reached_is_no_verdict() -> None:
    found = explore(scenario(CausalVector, "free"), limit=50)
    assert (found.states, found.complete, found.violated) == (50, False, ())


def test_all_that_is_wrong_is_listed_on_request() -> None:
    class Careless(unsequenced.AcceptsAnyLaterNumber):
        """Out of order, and each frame as often as it comes."""

        def hold_back(self, g: GroupId, frame: object) -> None:
            self.deliver(g, frame.origin, frame.n, frame.payload)  # type: ignore[attr-defined]

    found = explore(scenario(Careless, "burst"), stop_at_first=False)
    assert found.complete
    assert set(found.violated) == {"fifo.group"}
