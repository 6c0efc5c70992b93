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
        name="sequencing: own ACCEPT lowers the context",
        source="E-K8",
        breaks="causal.global",
        wrong=sequencing.OwnAcceptLowersTheContext,
        right=SequencingHybrid,
        stage=stages.guest_in_a_chain,
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
        name="sequencing: a joiner holds nothing",
        source="E-K15",
        breaks="total.pairwise",
        wrong=sequencing.AdmitsWithoutHolding,
        right=Sequencing,
        stage=stages.join_second_group,
    ),
    Faulty(
        name="sequencing: foreign groups in D",
        source="5.4: a member delivers what it has not delivered",
        breaks="agreement",
        wrong=sequencing.MergesForeignGroups,
        right=SequencingCausal,
        stage=stages.join_second_group,
    ),
    Faulty(
        name="sequencing: received numbers are forgotten",
        source="5.6: stable is what all have delivered",
        breaks="total.pairwise",
        wrong=sequencing.ForgetsWhatAllReceived,
        right=Sequencing,
        stage=stages.three_groups_lossy,
    ),
    Faulty(
        name="sequencing: split at once",
        source="5.8: leavers count until all have delivered the view without them",
        breaks="total.pairwise",
        wrong=sequencing.SplitsAtOnce,
        right=Sequencing,
        stage=stages.two_leave,
    ),
)
