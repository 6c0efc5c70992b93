"""Can these nodes write their traces to disk?"""

from __future__ import annotations

from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.report import Report


def check_traces(reports: dict[str, Report], diagnosis: Diagnosis) -> None:
    """A node whose trace cannot be written goes on, and only its status tells."""
    for address, report in reports.items():
        recorder = report.stats.recorder
        if recorder.failing:
            seen = (
                f"{report.identity} cannot write its trace ({recorder.failing}); "
                f"{recorder.lost} records are missing so far"
            )
            diagnosis.find("trace_fails", address, seen)
