"""Every faulty machine: on stages with seeds (`FAULTY`), under hand-made schedules (`DIRECTED`)."""

from __future__ import annotations

from faulty_machines import rows_001, rows_across_groups, rows_layers, schedules_001
from faulty_machines.directed import Directed
from faulty_machines.faulty import Faulty

FAULTY: dict[str, Faulty] = {
    row.name: row for row in (*rows_001.ROWS, *rows_across_groups.ROWS, *rows_layers.ROWS)
}

DIRECTED: dict[str, Directed] = {row.name: row for row in schedules_001.ROWS}
