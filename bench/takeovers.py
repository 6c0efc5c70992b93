"""A crash at any moment of a hand-over, and the race of two joins: everything that can happen.

    python -m bench.takeovers [--only TEXT] [--limit STATES]

Each scene of `tests/placings/catalogue.py` is searched whole, or up to the limit. What is counted:
states of the whole cluster, each looked at once; and interleavings, the ways from the first state
to an end. Packets that are void for good are not tried at every moment.
Exits with 1 if a promise is broken somewhere, and prints the shortest way there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the scenes serve the tests first

from placings.catalogue import everything
from placings.search import Found, explore

LIMIT = 300_000  # states of one scene


def main() -> int:
    """Search them one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="scenes whose name contains this")
    parser.add_argument("--limit", type=int, default=LIMIT, help="states of one scene")
    wanted = parser.parse_args()
    found = []
    for name, scene in everything():
        if wanted.only in name:
            began = process_time()
            found.append(explore(scene, limit=wanted.limit))
            print(f"{name}: {found[-1].summary}, {process_time() - began:.1f} s", flush=True)
            for line in (found[-1].complaint, *found[-1].schedule) if found[-1].complaint else ():
                print("   ", line)
    print(_total(found))
    return int(any(one.complaint for one in found))


def _total(found: list[Found]) -> str:
    states = sum(one.states for one in found)
    ways = sum(one.interleavings for one in found)
    complete = sum(one.complete for one in found)
    wrong = sum(bool(one.complaint) for one in found)
    return (
        f"{len(found)} scenes, {complete} complete, {wrong} wrong: "
        f"{states:,} states, {ways:.2e} interleavings of those that are complete"
    )


if __name__ == "__main__":
    sys.exit(main())
