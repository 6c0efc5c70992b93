"""The checks themselves: pure functions over one run's integer arrays, with no Spark in them.

The run
    ids.py                 message ids -> dense integers
    load.py                batches of rows -> sorted rows; incomplete_rows.py: refused
    assemble.py            sorted rows -> a run
    run.py                 one run: columns by row, by message and by delivery
    promises.py            what it declares, and the sub-run of a domain
    scratch.py             columns in memory, or in files
    compiled.py            loops that numba compiles when there is enough to do

What several checks ask
    causality.py           happened-before, as one stamp per message
    causal_knots.py        where it has cycles
    sends.py               how many sends of a process came before a row
    recorded.py            the views of each group
    membership.py          who is in which group when, and who owes which message
    missing_deliveries.py  what a process never delivers
    merge.py               all delivery orders as one, if they fit
    order_knots.py         messages of which no order fits all: faults that count apart
    strong_components.py   how knots are found
    inversions.py          who delivers messages in opposite orders, and how often

The checks
    integrity.py           wellformed, no_duplication, no_creation, membership
    liveness.py            validity, agreement
    precedence.py          fifo and causal: what must come before what
    total.py               total.group, .global, .pairwise; cycles.py: their witnesses
    total_gapless.py       total.gapless; gap_candidates.py and gaps.py: what may be missing, and is
    views.py               views, sending_view
    vsync.py               vsync
    findings.py            what a check has found
    judge.py               all of them: the 32 verdicts
"""
