"""The relational lane: what needs no scan in order, judged by Spark SQL alone.

Folds, joins and windows over a DataFrame of events. No Python runs in the executors, no run has to
fit anywhere, and not a line is shared with the kernels of `verify`: so the two can check each
other. See `docs/PROPERTIES.md`, "Judged twice".

    facts        the rare rows (views, joins, leaves, declarations), how each log stops
    membership   who is a member when
    tally        one pass over sends and deliveries, folded to counts
    integrity    wellformed, no_duplication, no_creation, membership, sending_view
    debtors      who owes what in the end
    liveness     validity and agreement, by counting
    outsiders    validity of messages from outside a group
    view_checks  views, vsync
    findings     from counts to verdicts
"""

from ordercast.pipeline.relational.findings import RELATIONAL
from ordercast.pipeline.relational.judge import relational

__all__ = ["RELATIONAL", "relational"]
