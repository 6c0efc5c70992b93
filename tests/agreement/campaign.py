"""python -m tests.agreement.campaign RUNS [first seed] [electorate] [workers] [merge] [operator]"""

from __future__ import annotations

import sys
import time
from collections import Counter

from ordercast.membership.agreement import Agreement
from tests.agreement.random_cluster import RandomCluster


def one(seed, *flags, machine=Agreement):
    run = RandomCluster(
        seed,
        electorate="electorate" in flags,
        workers="workers" in flags,
        operator="operator" in flags,
        partition="merge" if "merge" in flags else "primary",
        machine=machine,
    )
    try:
        run.run()
        return run, run.judge()
    except AssertionError as error:
        return run, {f"invariant: {error}"}


def main(runs, first, *flags):
    seeds, t, failed, views = {}, time.process_time(), 0, 0
    faults = Counter()
    for seed in range(first, first + runs):
        run, bad = one(seed, *flags)
        failed += bool(bad)
        views += len(run.views)
        faults += run.faults
        for b in bad:
            seeds.setdefault(b, []).append(seed)
    print(f"{' '.join(flags) or 'plain'}: {runs} runs, {failed} FAILED, {views} views, "
          f"{sum(faults.values())} faults, {time.process_time() - t:.0f} s of CPU",
          {b: (len(s), s[:6]) for b, s in seeds.items()}, flush=True)  # fmt: skip


if __name__ == "__main__":
    numbers = [int(x) for x in sys.argv[1:] if x.isdigit()]
    main(*[*numbers, 0][:2], *[x for x in sys.argv[1:] if not x.isdigit()])
