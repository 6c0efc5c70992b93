"""Faults in the sequencing service (000)."""

from __future__ import annotations

from faulty_machines import sequencing, stages
from faulty_machines.faulty import Faulty
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)

ROWS = (
    Faulty(
        name="sequencing: requests are numbered on arrival",
        source="E-K1",
        breaks="fifo.group",
        wrong=sequencing.NumbersOnArrival,
        right=Sequencing,
        stage=stages.reordering,
    ),
    Faulty(
        name="sequencing: no history",
        source="E-K2",
        breaks="agreement",
        wrong=sequencing.KeepsNoHistory,
        right=Sequencing,
        stage=stages.lossy,
    ),
    Faulty(
        name="sequencing: T2 as equality, one sequencer",
        source="E-K3",
        breaks="validity",
        wrong=sequencing.WaitsForTheSameSet,
        right=Sequencing,
        stage=stages.two_groups_of_one,
    ),
    Faulty(
        name="sequencing: T2 as equality, two sequencers",
        source="E-K4",
        breaks="validity",
        wrong=sequencing.WaitsForTheSameSet,
        right=Sequencing,
        stage=stages.two_groups_of_two,
    ),
    Faulty(
        name="sequencing: T2 in total and causal order",
        source="E-K5",
        breaks="validity",
        wrong=sequencing.WaitsForTheSameNumbers,
        right=SequencingCausal,
        stage=stages.two_groups_of_two,
    ),
    Faulty(
        name="sequencing: S2 called global",
        source="E-K7",
        breaks="total.global",
        wrong=sequencing.PairwiseCalledGlobal,
        right=SequencingGlobal,
        stage=stages.triangle_of_three,
        right_stage=stages.triangle_of_one,
    ),
    Faulty(
        name="sequencing: members wait for foreign ids",
        source="E-K9",
        breaks="agreement",
        wrong=sequencing.WaitsForForeignIds,
        right=SequencingHybrid,
        stage=stages.two_groups_of_two,
    ),
    Faulty(
        name="sequencing: members wait for ids",
        source="E-K11",
        breaks="validity",
        wrong=sequencing.NamesIds,
        right=SequencingHybrid,
        stage=stages.two_groups_apart,
    ),
    Faulty(
        name="sequencing: received numbers are forgotten",
        source="5.6: stable is what all have delivered",
        breaks="total.pairwise",
        wrong=sequencing.ForgetsWhatAllReceived,
        right=Sequencing,
        stage=stages.three_groups_lossy,
    ),
)
