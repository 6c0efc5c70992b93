"""Faults in the two-layered group (002)."""

from __future__ import annotations

from random import Random

from faulty_machines import two_layers
from faulty_machines.faulty import Faulty
from faulty_machines.stages import Fields
from ordercast.core.protocol import Options
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.simulation import Crash, FlushTo, LogNormal, Uniform

SIX, NINE = range(6), range(9)  # two subgroups of three, three of three


def reordering(_: Random) -> Fields:
    return {"members": len(SIX), "delay": Uniform(500, 5000)}


def three_subgroups(_: Random) -> Fields:
    return {"members": len(NINE), "delay": LogNormal(1000, 1.4), "messages": 20}


def preacknowledged(_: Random) -> Fields:
    options = Options(delivery_level="preack", ack_delay_ms=1, ack_every=1)
    delay = LogNormal(500, 1.6)
    return {"members": len(SIX), "delay": delay, "options": options, "messages": 20}


def lossy(_: Random) -> Fields:
    return {"members": len(SIX), "loss": 0.2, "delay": Uniform(500, 3000)}


def gateway_crash(rng: Random) -> Fields:
    return _crashes(rng, [0])


def two_crashes(rng: Random) -> Fields:
    return _crashes(rng, rng.sample(SIX, 2))


def _crashes(rng: Random, dead: list[int]) -> Fields:
    at_ms = rng.uniform(3, 12)
    living = tuple(p for p in SIX if p not in dead)
    crashes = (Crash(p, at_ms=at_ms, lose=0.9) for p in dead)
    return {
        "members": len(SIX),
        "delay": LogNormal(1000, 1.4),
        "messages": 16,
        "faults": (*crashes, FlushTo(1, living, at_ms=at_ms + rng.uniform(0, 10))),
    }


ROWS = (
    Faulty(
        name="TG: accepted by sender alone",
        source="E-T2",
        breaks="causal.group",
        wrong=two_layers.AcceptsBySenderAlone,
        right=TwoLayered,
        stage=reordering,
    ),
    Faulty(
        name="TG: pre-acknowledged by the ordering rules",
        source="E-T3",
        breaks="causal.group",
        wrong=two_layers.PreacknowledgedByTheRules,
        right=TwoLayered,
        stage=preacknowledged,
    ),
    Faulty(
        name="TG: GSQ is raised afterwards",
        source="E-T4",
        breaks="causal.group",
        wrong=two_layers.CountsAfterwards,
        right=TwoLayered,
        stage=three_subgroups,
    ),
    Faulty(
        name="TG: no confirmation alone",
        source="8.4: an idle tail needs confirmations",
        breaks="agreement",
        wrong=two_layers.NeverConfirmsAlone,
        right=TwoLayered,
        stage=lossy,
    ),
    Faulty(
        name="TG: what waits is handed round",
        source="8.4b: what survivors accepted",
        breaks="causal.group",
        wrong=two_layers.HandsRoundWhatWaits,
        right=TwoLayered,
        stage=two_crashes,
    ),
    Faulty(
        name="TG: the gateway's numbers decide",
        source="8.4b: the gateway numbers anew",
        breaks="causal.group",
        wrong=two_layers.GatewaysNumbersDecide,
        right=TwoLayered,
        stage=gateway_crash,
    ),
    Faulty(
        name="TG: subgroups flush alone",
        source="8.4b: the union is of all subgroups",
        breaks="agreement",
        wrong=two_layers.SubgroupsFlushAlone,
        right=TwoLayered,
        stage=gateway_crash,
    ),
)
