"""Random faults on live clusters: real processes, networks of their own, and an outside judge.

    plan                    what a seed stands for: a cluster, its work, its faults
    participant             the program in every process; it writes down all it sends, gets and sees
    nursery                 a process that forks participants, so that one starts in milliseconds
    lane, network           carry out plans, one after the other, on one network
    logs, history           what the programs wrote, read and put together
    judge, causality        what must hold of it; `promises` says of which group
    recovery, known         findings that are explained, each by a narrow rule
    ledger                  what was run and found, in chaos/results.json
    verdict                 the Spark verdict on the traces of many runs
    soak, soaker            one cluster for hours, with restarts: does anything grow?

Only `participant`, `soaker` and `verdict` import ordercast. docs/CHAOS.md says how to run, read and
replay.
"""
