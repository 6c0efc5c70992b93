"""The abstract network does all that its class allows, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from explored import scenario
from faulty_machines.unsequenced import TrustingBasic
from ordercast.core.declaration import Network
from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId
from ordercast.core.protocol import OrderingProtocol
from ordercast.exploration import Saying, Scenario, explore, one_group
from ordercast.exploration.network import Medium
from ordercast.exploration.process import Packet
from ordercast.exploration.space import Action, Space, State
from ordercast.exploration.words import line
from ordercast.machinery.stability import Ack
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.sequencer_pb import SequencerPB


class Numbered(msgspec.Struct, frozen=True):
    """A header."""

    n: int


PACKETS = [  # (sender, group): 0 and 1 from p1 to g1, 2 from p1 to g2, 3 from p2 to g1
    Packet(0, Receive(src, group, 1, Numbered(n)))
    for n, (src, group) in enumerate([(1, 1), (1, 1), (1, 2), (2, 1)])
]


@pytest.mark.parametrize(
    ("network", "may_come"),
    [("N0", [0, 1, 2, 3]), ("N1", [0, 1, 2, 3]), ("N2f", [0, 2, 3]), ("N2", [0, 3])],
)
def test_what_may_arrive_first(network: Network, may_come: list[int]) -> None:
    medium = Medium(network, PACKETS)
    inbox: tuple[int, ...] = ()
    for packet in (3, 0, 1, 2):
        inbox = medium.add(inbox, packet)
    assert sorted(medium.next(inbox)) == may_come


@pytest.mark.parametrize("network", ["N1", "N2f", "N2"])
def test_inboxes_with_the_same_future_are_equal(network: Network) -> None:
    medium = Medium(network, PACKETS)
    one = medium.add(medium.add((), 0), 3)
    other = medium.add(medium.add((), 3), 0)
    assert one == other
    assert medium.without(one, 0) == (3,)


def test_a_queue_keeps_its_order_whatever_the_numbers_of_its_packets() -> None:
    medium = Medium("N2", PACKETS)
    assert medium.next(medium.add(medium.add((), 1), 0)) == [1]


def test_what_is_lost_with_its_sender_takes_its_queue_along() -> None:
    assert Medium("N2", PACKETS).without_queue((0, 1, 2, 3), 0) == (3,)
    assert Medium("N2f", PACKETS).without_queue((0, 1, 2, 3), 0) == (2, 3)
    assert Medium("N1", PACKETS).without_queue((0, 1, 2, 3), 0) == (1, 2, 3)


def trusting(network: Network, *promises: str) -> type[OrderingProtocol]:
    """Delivers whatever arrives, on a network of this class."""

    class Trusting(TrustingBasic):
        declaration = msgspec.structs.replace(
            TrustingBasic.declaration, network=network, promises=promises
        )

        def invariants(self) -> None:
            """None that it would keep: frames come twice."""

    return Trusting


@pytest.mark.parametrize(
    ("network", "order", "kept"),
    [
        ("N1", "fifo.group", False),
        ("N2f", "fifo.group", True),
        ("N2f", "fifo.global", False),
        ("N2", "fifo.global", True),
        ("N2", "causal.group", False),
    ],
)
def test_a_machine_that_trusts_the_network_gets_what_the_class_gives(
    network: Network, order: str, kept: bool
) -> None:
    protocol = trusting(network, order)
    scenarios = [
        scenario(protocol, script, 3, overlap=overlap)
        for script in ("burst", "replies")
        for overlap in (False, True)
    ]
    violated = {name for one in scenarios for name in explore(one).violated}
    assert violated == (set() if kept else {order})


def test_without_duplicates_nothing_comes_twice_and_with_them_something_does() -> None:
    protocol = trusting("N1", "no_duplication")
    assert explore(scenario(protocol, "free")).complete
    assert explore(scenario(protocol, "free", duplicates=1)).violated == ("no_duplication",)


def test_faults_are_dealt_out_in_every_way() -> None:
    roots = list(Space(scenario(SequencerPB, "free", losses=2, crash=True, processes=2)).roots())
    assert [root.faults for root in roots] == [
        ((losses, 0, crash), (2 - losses, 0, 1 - crash)) for losses in (2, 1, 0) for crash in (1, 0)
    ]


def test_timers_fire_only_when_nothing_is_under_way_and_nobody_speaks() -> None:
    space = Space(scenario(Fifo, "free", 1, rounds_after=1))
    (state,) = space.roots()
    while not any(action.kind == "timer" for own in space.actions(state) for action in own):
        assert not space.is_idle(state)
        action = next(action for own in space.actions(state) for action in own)
        state, _ = space.after(state, action)
    assert space.is_idle(state)
    assert {action.p for own in space.actions(state) for action in own} == {1, 2}


class TwoTimers(Fifo):
    """The timer `first` tells the others and sets `second`, which runs already."""

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.set_timer(view.group, "first", 1)
        self.set_timer(view.group, "second", 2)

    def on_timer(self, g: GroupId, name: str) -> None:
        if name == "first":
            self.b_multicast(g, Ack(0))
            self.set_timer(g, "second", 2)


def possible(space: Space, state: State) -> list[str]:
    return sorted(line(space.processes, a) for own in space.actions(state) for a in own)


def test_a_timer_that_is_set_again_waits_for_the_next_round_and_packets_come_before_timers() -> (
    None
):
    silent = Scenario(protocol=TwoTimers, processes=2, groups=one_group(2), script=())
    space = Space(silent)
    (state,) = space.roots()
    timers = [f"timer {name} of g1 fires at p{p}" for name in ("first", "second") for p in (0, 1)]
    assert possible(space, state) == timers
    state, _ = space.after(state, Action("timer", 0, (1, "first")))
    assert possible(space, state) == ["packet g1 Ack(n=0) p0 -> p1 arrives"]
    (arrival,) = (action for own in space.actions(state) for action in own)
    state, _ = space.after(state, arrival)
    assert possible(space, state) == [
        "timer first of g1 fires at p1",
        "timer second of g1 fires at p1",
    ]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"processes": 0}, "processes=0 must be at least 1"),
        ({"rounds": -1}, "rounds=-1 must not be negative"),
        ({"losses": 1}, "fifo needs a network of class N1, which loses nothing"),
        ({"groups": ((0, 3),)}, "process 3, but processes=2: processes are 0 to 1"),
        ({"groups": ((0, 0),)}, "none twice"),
        ({"script": (Saying(1, 2),)}, r"no member; the groups are g1 = \{0, 1\}"),
        ({"script": (Saying(1, 1, 0),)}, "m1 answers message 1, which is none before it"),
        ({"expect": ("speed",)}, "unknown property 'speed'; known are wellformed"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(changed: dict[str, object], says: str) -> None:
    fine = {"protocol": Fifo, "processes": 2, "groups": one_group(2), "script": (Saying(1, 1),)}
    with pytest.raises(ValueError, match=says):
        Scenario(**{**fine, **changed})  # type: ignore[arg-type]


def test_a_network_that_repeats_nothing_has_no_duplicates() -> None:
    with pytest.raises(ValueError, match="class N2, which repeats nothing"):
        scenario(TrustingBasic, "free", duplicates=1)
