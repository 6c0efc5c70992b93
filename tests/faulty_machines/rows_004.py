"""Faults in the protocols over Causal Blocks (004)."""

from __future__ import annotations

from faulty_machines import blocks, relatives, stages
from faulty_machines.faulty import Faulty
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.fast import Fast
from ordercast.protocols.fast_p import FastP
from ordercast.protocols.relative import Relative
from ordercast.protocols.slow import Slow

ROWS = (
    Faulty(
        name="own column of the block matrix counts",
        source="E-M2",
        breaks="agreement",
        wrong=blocks.WaitsForItself,
        right=Slow,
        stage=stages.orderly,
    ),
    Faulty(
        name="Fast as printed",
        source="E-M3",
        breaks="agreement",
        wrong=blocks.FastAsPrinted,
        right=Fast,
        stage=stages.two_groups,
    ),
    Faulty(
        name="m.ldv >= LDV blocks",
        source="E-M5",
        breaks="agreement",
        wrong=relatives.DeliversFromAbove,
        right=Relative,
        stage=stages.orderly,
    ),
    Faulty(
        name="m.ldv >= LDV is unsafe",
        source="E-M5",
        breaks="causal.group",
        wrong=relatives.DeliversFromAbove,
        right=Relative,
        stage=stages.orderly,
    ),
    Faulty(
        name="a block counter per group",
        source="E-M6",
        breaks="agreement",
        wrong=relatives.ACounterPerGroup,
        right=Relative,
        stage=stages.orderly_overlap,
    ),
    Faulty(
        name="GBN by assignment",
        source="E-M7",
        breaks="causal.global",
        wrong=relatives.AssignsTheNumberOfItsGroup,
        right=Relative,
        stage=stages.orderly_overlap,
    ),
    Faulty(
        name="C02 looks at one block",
        source="E-M8",
        breaks="causal.global",
        wrong=relatives.LooksAtOneBlock,
        right=Relative,
        stage=stages.orderly_triangle,
    ),
    Faulty(
        name="no gbn",
        source="E-M9",
        breaks="causal.global",
        wrong=relatives.TellsNothingOfOtherGroups,
        right=Relative,
        stage=stages.orderly_overlap,
    ),
    Faulty(
        name="no updates on delivery",
        source="E-M9",
        breaks="agreement",
        wrong=relatives.NotesNothingOnDelivery,
        right=Relative,
        stage=stages.orderly,
    ),
    Faulty(
        name="a group number that another told",
        source="7.5: every message carries GBN",
        breaks="causal.global",
        wrong=relatives.LeavesOutWhatAnotherTold,
        right=Relative,
        stage=stages.orderly_overlap,
    ),
    Faulty(
        name="slow without NULLs",
        source="6: who has nothing to say says NULL",
        breaks="validity",
        wrong=blocks.SilentSlow,
        right=Slow,
        stage=stages.orderly,
    ),
    Faulty(
        name="relative without NULLs",
        source="6: who has nothing to say says NULL",
        breaks="agreement",
        wrong=relatives.SilentRelative,
        right=Relative,
        stage=stages.orderly_overlap,
    ),
    Faulty(
        name="slow on a reordering network",
        source="6: links are first-in first-out",
        breaks="causal.group",
        wrong=blocks.SlowOnAReorderingNetwork,
        right=Slow,
        stage=stages.reordering,
    ),
    Faulty(
        name="fast_p on a reordering network",
        source="6: links are first-in first-out",
        breaks="causal.group",
        wrong=blocks.FastPOnAReorderingNetwork,
        right=FastP,
        stage=stages.reordering,
    ),
    Faulty(
        name="relative on a reordering network",
        source="6: links are first-in first-out",
        breaks="causal.global",
        wrong=relatives.RelativeOnAReorderingNetwork,
        right=Relative,
        stage=stages.two_groups,
    ),
    Faulty(
        name="block b - 1 for a total order",
        source="7.6: block b itself",
        breaks="total.group",
        wrong=blocks.SlowCalledTotal,
        right=BlockTotal,
        stage=stages.orderly,
    ),
    Faulty(
        name="a joiner at 0",
        source="7.5b: a joiner counts from the number of its view",
        breaks="agreement",
        wrong=blocks.JoinsAtZero,
        right=BlockTotal,
        stage=stages.join,
    ),
)
