"""python -m tests.views.campaign ORDER RUNS [first seed] [k] [crashes] [flag ...]"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter

from ordercast.errors import PeerError
from ordercast.views.changes import Changes
from tests.views.judge import judge
from tests.views.oracle_cluster import OracleCluster


def one(seed, order, k=0, crashes=1, flags=(), page=None, changes=Changes):
    """One run, and the rules that it broke."""
    run = OracleCluster(seed, order, k, crashes, flags, page, changes)
    try:
        run.run()
        return run, judge(run)
    except AssertionError as error:
        return run, {f"invariant: {error}"}
    except PeerError as error:
        return run, {f"an honest node is at fault: {error}"}
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        return run, {f"error: {error!r} {line.name}:{line.lineno}"}


def main(order, runs, first=0, k=0, crashes=1, *flags):
    count, seeds, t, failed = Counter(), {}, time.time(), 0
    steps = sends = crashed = changes = 0
    for seed in range(first, first + runs):
        run, bad = one(seed, order, k, crashes, flags)
        failed += bool(bad)
        for b in bad:
            count[b] += 1
            seeds.setdefault(b, seed)
        steps += run.steps
        crashed += len(run.dead_at)
        changes += max(x.changes.done for x in run.nodes.values())
        sends += sum(1 for x in run.nodes.values() for e in x.log if e[0] == "send")
    print(
        f"{order} k={k} crashes<={crashes} {' '.join(flags)}: {runs} runs, "
        f"{failed} FAILED, {steps} steps, "
        f"{sends} sends, {crashed} crashes, {changes} changes, {time.time() - t:.0f} s; "
        f"{dict(count)} {seeds}",
        flush=True,
    )


if __name__ == "__main__":
    a = sys.argv[1:]
    numbers = [int(x) for x in a[1:] if x.isdigit()]
    numbers += [0, 0, 1][len(numbers) - 1 :]
    main(a[0], *numbers, *[x for x in a[1:] if not x.isdigit()])
