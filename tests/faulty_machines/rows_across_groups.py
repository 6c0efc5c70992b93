"""Faults in orders that span groups, by vectors and tables."""

from __future__ import annotations

from faulty_machines import across_groups, stages
from faulty_machines.faulty import Faulty
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.global_fifo import GlobalFifo

ROWS = (
    Faulty(
        name="FIFO in each group",
        source="001, Overlapping Groups: numbers of other groups count",
        breaks="fifo.global",
        wrong=across_groups.FifoInEachGroup,
        right=GlobalFifo,
        stage=stages.two_groups,
    ),
    Faulty(
        name="a clock per group",
        source="3.2: the vectors of all groups are carried",
        breaks="causal.global",
        wrong=across_groups.AClockPerGroup,
        right=Cbcast,
        stage=stages.two_groups,
    ),
    Faulty(
        name="the sender's own groups only",
        source="3.2: on a ring foreign groups are carried, too",
        breaks="causal.global",
        wrong=across_groups.TellsOnlyItsOwnGroups,
        right=Cbcast,
        stage=stages.ring_of_groups,
    ),
    Faulty(
        name="maximum for own groups",
        source="3.2: own entries count deliveries",
        breaks="causal.global",
        wrong=across_groups.ClaimsWhatItHasNotDelivered,
        right=Cbcast,
        stage=stages.two_groups,
    ),
    Faulty(
        name="contiguous prefix alone",
        source="11.2: what is lost is not waited for",
        breaks="agreement",
        wrong=across_groups.FlushesThePrefixAlone,
        right=Cbcast,
        stage=stages.overlapping_crashes,
    ),
    Faulty(
        name="what depends on the lost is delivered",
        source="11.2: what depends on the lost is lost",
        breaks="causal.group",
        wrong=across_groups.DeliversWithoutTheLost,
        right=Cbcast,
        stage=stages.overlapping_crashes,
    ),
    Faulty(
        name="a sequencer for each group",
        source="4.5: one order over all groups",
        breaks="total.pairwise",
        wrong=across_groups.SequencersCalledPairwise,
        right=BlockTotal,
        stage=stages.two_groups,
    ),
    Faulty(
        name="no send rule",
        source="11.3: another process holds what was sent to other groups",
        breaks="causal.global",
        wrong=across_groups.SendsWithoutWaiting,
        right=Cbcast,
        stage=stages.overlapping_crash,
    ),
)
