"""Every faulty machine: what it does wrong, where that shows, and what it breaks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from faulty_machines import links, membership, sequenced, unsequenced
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.reliable import Reliable
from ordercast.protocols.sequencer_bb import SequencerBB
from ordercast.protocols.sequencer_pb import SequencerPB
from ordercast.protocols.vector import CausalVector
from ordercast.simulation import (
    Crash,
    Exponential,
    FlushTo,
    GroupConfig,
    Join,
    LogNormal,
    Outcome,
    SimulationConfig,
    Uniform,
    Workload,
)
from ordercast.simulation.engine import Limits
from ordercast.simulation.run import build, outcome, stacks
from ordercast.stack.stack import Stack

Protocol = type[OrderingProtocol]
Fields = dict[str, Any]  # of a SimulationConfig

EVERYBODY = (0, 1, 2, 3)
QUIET_TICKS = 10_000_000  # ten simulated seconds; a blocked machine talks on for ever
MOST_EVENTS = 10_000  # a hundred times what a right machine needs


def lossy(_: Random) -> Fields:
    return {"loss": 0.2, "duplicate": 0.1, "delay": Uniform(500, 3000)}


def doubling(_: Random) -> Fields:
    return {"duplicate": 0.2, "delay": Uniform(500, 3000)}


def reordering(_: Random) -> Fields:
    return {"delay": Uniform(500, 5000)}


def two_crashes(rng: Random) -> Fields:
    faults = tuple(Crash(p, at_ms=rng.uniform(1, 8)) for p in (0, 1))
    return {"delay": Uniform(500, 3000), "faults": faults}


def sender_crash(rng: Random) -> Fields:
    crash = Crash(0, at_ms=rng.uniform(1, 8), lose=0.5)
    return {"delay": Uniform(500, 3000), "faults": (crash,)}


def crash_and_flush(rng: Random) -> Fields:
    at_ms = rng.uniform(1, 8)
    flush = FlushTo(1, EVERYBODY[1:], at_ms=at_ms + rng.uniform(0, 10))
    return {"delay": Uniform(500, 3000), "faults": (Crash(0, at_ms=at_ms, lose=0.5), flush)}


def early_flush(rng: Random) -> Fields:
    return {
        "delay": Exponential(500, 3000),
        "faults": (FlushTo(1, EVERYBODY, at_ms=rng.uniform(3, 12)),),
        "options": Options(ack_every=1, ack_delay_ms=1, status_ms=1),
    }


def stragglers_and_flush(rng: Random) -> Fields:
    return {
        "delay": LogNormal(1000, 1.6),
        "faults": (FlushTo(1, EVERYBODY, at_ms=rng.uniform(5, 25)),),
        "options": Options(ack_every=1, ack_delay_ms=1, status_ms=1),
    }


def join(rng: Random) -> Fields:
    return {
        "delay": Uniform(500, 5000),
        "groups": (GroupConfig(members=(0, 1, 2), led=True),),
        "faults": (Join(3, 1, at_ms=rng.uniform(4, 12)),),
    }


def led_crash(rng: Random) -> Fields:
    return {
        "delay": Uniform(500, 5000),
        "groups": (GroupConfig(members=EVERYBODY, led=True),),
        "faults": (Crash(3, at_ms=rng.uniform(5, 12), lose=0.5),),
        "detect_ms": 1.0,
    }


class Faulty(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, beside the machine without it."""

    name: str
    source: str  # an erratum, or the rule that is left out
    breaks: str  # the property that must be found violated
    wrong: Protocol
    right: Protocol
    stage: Callable[[Random], Fields]  # where it shows
    stack: type[Stack] = Stack  # of the wrong machine

    def run(self, seed: int) -> Outcome:
        """The faulty machine under this seed."""
        return play(self._config(self.wrong, seed), self.stack)

    def run_right(self, seed: int) -> Outcome:
        """The right machine under the same seed."""
        return play(self._config(self.right, seed), Stack)

    def _config(self, protocol: Protocol, seed: int) -> SimulationConfig:
        plain: Fields = {
            "protocol": protocol,
            "members": len(EVERYBODY),
            "messages": 8,
            "workload": Workload(reply=0.8, depth=4),
            "seed": seed,
        }
        return SimulationConfig(**{**plain, **self.stage(Random(f"{self.name} {seed}"))})


def play(config: SimulationConfig, stack: type[Stack]) -> Outcome:
    """A run over stacks of this kind, stopped when nothing happens to anybody any more."""
    machines = [stack(s.me, network=s.network, options=s.options) for s in stacks(config)]
    simulation = build(config, machines)
    simulation.start()
    limits = Limits(ticks=10**9, events=MOST_EVENTS, quiet=QUIET_TICKS)
    ended = simulation.run(limits)
    if ended == "quiescent":
        simulation.finish()
    return outcome(config, simulation, ended)


FAULTY: dict[str, Faulty] = {
    faulty.name: faulty
    for faulty in (
        Faulty(
            name="relay after delivery",
            source="E-C1",
            breaks="agreement.uniform",
            wrong=unsequenced.DeliversBeforeRelaying,
            right=Reliable,
            stage=two_crashes,
        ),
        Faulty(
            name="basic called reliable",
            source="001, Reliable Multicast: no relay",
            breaks="agreement",
            wrong=unsequenced.BasicCalledReliable,
            right=Reliable,
            stage=sender_crash,
        ),
        Faulty(
            name="any later number is next",
            source="001, FIFO Ordering (2): n > R for n = R + 1",
            breaks="fifo.group",
            wrong=unsequenced.AcceptsAnyLaterNumber,
            right=Fifo,
            stage=reordering,
        ),
        Faulty(
            name="hold-back queue wakes once",
            source="the queue's meaning: until a whole pass delivers nothing",
            breaks="agreement",
            wrong=unsequenced.WakesOnlyOnce,
            right=Fifo,
            stage=reordering,
        ),
        Faulty(
            name="fifo ignores the era",
            source="numbers carry their era",
            breaks="no_duplication",
            wrong=unsequenced.FifoIgnoresEra,
            right=Fifo,
            stage=early_flush,
        ),
        Faulty(
            name="fifo without flush",
            source="the flush of a view change",
            breaks="agreement",
            wrong=unsequenced.FifoWithoutFlush,
            right=Fifo,
            stage=crash_and_flush,
        ),
        Faulty(
            name="vector counts received",
            source="E-C5",
            breaks="causal.group",
            wrong=unsequenced.CountsReceived,
            right=CausalVector,
            stage=reordering,
        ),
        Faulty(
            name="own copy is tested",
            source="E-C6",
            breaks="validity",
            wrong=unsequenced.TestsItsOwnCopy,
            right=CausalVector,
            stage=reordering,
        ),
        Faulty(
            name="stable when received",
            source="stable means delivered by all",
            breaks="vsync",
            wrong=unsequenced.StableWhenReceived,
            right=CausalVector,
            stage=stragglers_and_flush,
        ),
        Faulty(
            name="PB numbers on arrival",
            source="E-C7",
            breaks="fifo.group",
            wrong=sequenced.NumbersOnArrivalPB,
            right=SequencerPB,
            stage=reordering,
        ),
        Faulty(
            name="BB numbers on arrival",
            source="E-C7",
            breaks="fifo.group",
            wrong=sequenced.NumbersOnArrivalBB,
            right=SequencerBB,
            stage=reordering,
        ),
        Faulty(
            name="repeats are numbered again",
            source="de-duplication at the sequencer",
            breaks="no_duplication",
            wrong=sequenced.NumbersRepeatsAgain,
            right=SequencerPB,
            stage=doubling,
        ),
        Faulty(
            name="no FETCH",
            source="a gap is fetched",
            breaks="agreement",
            wrong=sequenced.WithoutFetch,
            right=SequencerPB,
            stage=lossy,
        ),
        Faulty(
            name="no STATUS",
            source="E-C3",
            breaks="agreement",
            wrong=sequenced.WithoutStatus,
            right=SequencerPB,
            stage=lossy,
        ),
        Faulty(
            name="retry under a fresh id",
            source="a request is repeated under the same id",
            breaks="no_duplication",
            wrong=sequenced.RetriesUnderAFreshId,
            right=SequencerPB,
            stage=lossy,
        ),
        Faulty(
            name="highest received is acknowledged",
            source="stable means delivered by all",
            breaks="agreement",
            wrong=sequenced.AcknowledgesTheHighest,
            right=SequencerPB,
            stage=lossy,
        ),
        Faulty(
            name="joiner starts at the first number seen",
            source="a joiner starts at the entry that admits it",
            breaks="agreement",
            wrong=sequenced.StartsAtTheFirstNumberSeen,
            right=SequencerPB,
            stage=join,
        ),
        Faulty(
            name="sequencer without flush",
            source="the flush after the sequencer's crash",
            breaks="agreement",
            wrong=sequenced.SequencerWithoutFlush,
            right=SequencerPB,
            stage=crash_and_flush,
        ),
        Faulty(
            name="era forgets what was numbered",
            source="the last frame of each origin outlives the era",
            breaks="validity",
            wrong=sequenced.ForgetsWhatWasNumbered,
            right=SequencerPB,
            stage=crash_and_flush,
        ),
        Faulty(
            name="sequencer ignores the era",
            source="numbers carry their era",
            breaks="no_duplication",
            wrong=sequenced.SequencerIgnoresEra,
            right=SequencerPB,
            stage=early_flush,
        ),
        Faulty(
            name="link never repeats",
            source="a link transmits again what is not acknowledged",
            breaks="agreement",
            wrong=Fifo,
            right=Fifo,
            stage=lossy,
            stack=links.StackThatNeverRepeats,
        ),
        Faulty(
            name="link hands up repeats",
            source="a link drops what it has handed up",
            breaks="no_duplication",
            wrong=unsequenced.TrustingBasic,
            right=unsequenced.TrustingBasic,
            stage=lossy,
            stack=links.StackThatHandsUpRepeats,
        ),
        Faulty(
            name="link acknowledges ahead",
            source="a link acknowledges what has come without a gap",
            breaks="agreement",
            wrong=Fifo,
            right=Fifo,
            stage=lossy,
            stack=links.StackThatAcknowledgesAhead,
        ),
        Faulty(
            name="member sends during the flush",
            source="between PROPOSE and INSTALL nothing is sent",
            breaks="agreement",
            wrong=Fifo,
            right=Fifo,
            stage=led_crash,
            stack=membership.StackThatSendsDuringTheFlush,
        ),
        Faulty(
            name="leader waits for nobody",
            source="a view is installed when all have reported",
            breaks="agreement",
            wrong=Fifo,
            right=Fifo,
            stage=led_crash,
            stack=membership.StackThatWaitsForNobody,
        ),
    )
}
