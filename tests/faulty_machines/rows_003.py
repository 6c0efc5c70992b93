"""Faults in TOTAL of JavaGroups (003)."""

from __future__ import annotations

from faulty_machines import stages, totals
from faulty_machines.faulty import Faulty
from ordercast.protocols.javagroups import JavaGroupsTotal

ROWS = (
    Faulty(
        name="TOTAL: a lost REQUEST is no issue",
        source="E-J1",
        breaks="validity",
        wrong=totals.NeverRepeatsARequest,
        right=JavaGroupsTotal,
        stage=stages.lossy,
    ),
    Faulty(
        name="TOTAL: requests are repeated without an id",
        source="E-J2",
        breaks="no_duplication",
        wrong=totals.RepeatsWithoutAnId,
        right=JavaGroupsTotal,
        stage=stages.lossy,
    ),
    Faulty(
        name="TOTAL: requests are numbered on arrival",
        source="E-J3",
        breaks="fifo.group",
        wrong=totals.NumbersRequestsOnArrival,
        right=JavaGroupsTotal,
        stage=stages.reordering,
    ),
    Faulty(
        name="TOTAL: no STATUS",
        source="E-J4",
        breaks="agreement",
        wrong=totals.SaysNoStatus,
        right=JavaGroupsTotal,
        stage=stages.lossy,
    ),
    Faulty(
        name="TOTAL: NEW_VIEW as printed",
        source="E-J5",
        breaks="agreement",
        wrong=totals.NewViewAsPrinted,
        right=JavaGroupsTotal,
        stage=stages.lossy,
    ),
    Faulty(
        name="TOTAL: no view id in the header",
        source="E-J6",
        breaks="no_duplication",
        wrong=totals.IgnoresTheViewId,
        right=JavaGroupsTotal,
        stage=stages.early_flush,
    ),
    Faulty(
        name="TOTAL: the queue is cleared",
        source="E-J7",
        breaks="agreement",
        wrong=totals.ClearsTheQueue,
        right=JavaGroupsTotal,
        stage=stages.crash_and_flush,
    ),
)
