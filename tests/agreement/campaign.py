"""python -m tests.agreement.campaign RUNS [first seed] [electorate] [workers] [merge]"""

from __future__ import annotations

import sys
import time
from collections import Counter

from tests.agreement.random_cluster import RandomCluster


def one(seed, *flags):
    run = RandomCluster(
        seed,
        electorate="electorate" in flags,
        workers="workers" in flags,
        partition="merge" if "merge" in flags else "primary",
    )
    try:
        run.run()
        return run, run.judge()
    except AssertionError as error:
        return run, {f"invariant: {error}"}


def main(runs, first, *flags):
    count, seeds, t, failed, views = Counter(), {}, time.time(), 0, 0
    for seed in range(first, first + runs):
        run, bad = one(seed, *flags)
        failed += bool(bad)
        views += len(run.views)
        for b in bad:
            count[b] += 1
            seeds.setdefault(b, []).append(seed)
    print(f"{flags}: {runs} runs, {failed} FAILED, {views} views, {time.time() - t:.0f} s",
          {b: s[:5] for b, s in seeds.items()}, dict(count), flush=True)  # fmt: skip


if __name__ == "__main__":
    numbers = [int(x) for x in sys.argv[1:] if x.isdigit()]
    main(*[*numbers, 0][:2], *[x for x in sys.argv[1:] if not x.isdigit()])
