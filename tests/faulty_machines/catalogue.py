"""Every faulty machine: on stages with seeds (`FAULTY`), under hand-made schedules (`DIRECTED`)."""

from __future__ import annotations

from faulty_machines import (
    rows_000,
    rows_001,
    rows_002,
    rows_003,
    rows_004,
    rows_across_groups,
    rows_layers,
    schedules_000,
    schedules_001,
    schedules_002,
    schedules_003,
    schedules_004,
)
from faulty_machines.directed import Directed
from faulty_machines.faulty import Faulty

FAULTY: dict[str, Faulty] = {
    row.name: row
    for rows in (rows_000, rows_001, rows_002, rows_across_groups, rows_003, rows_004, rows_layers)
    for row in rows.ROWS
}

DIRECTED: dict[str, Directed] = {
    row.name: row
    for rows in (schedules_000, schedules_001, schedules_002, schedules_003, schedules_004)
    for row in rows.ROWS
}
