"""The slow, obvious judge of one run: every property, written as its definition reads.

It searches graphs and tries all pairs. It is meant for some sixty events, and it is the reference
that every faster judge is compared with, so it shares no code with any of them.
Where a definition left room, `docs/decisions/0003-trace-definitions.md` says what was chosen.
"""

from ordercast.trace.oracle.judge import judge, judge_runs, unspecified, verdicts

__all__ = ["judge", "judge_runs", "unspecified", "verdicts"]
