"""For the tests of applications: a pytest fixture that makes clusters, and a judge of traces.

def test_everybody_hears_it(ordercast_cluster):
    async def scenario():
        async with ordercast_cluster(3, order="total") as cluster:
            await cluster.groups[0].multicast(b"hello")
            ...
    asyncio.run(scenario())

def test_the_order_held(tmp_path):
    ...  # nodes with trace=tmp_path
    assert_order(tmp_path, "causal")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack

import pytest

if TYPE_CHECKING:
    from ordercast.judge.outcome import RunOutcome
    from ordercast.runtime.keywords import ClusterKeywords
    from ordercast.runtime.local_cluster import LocalCluster


class MakesClusters(Protocol):
    """What the fixture is, for type checkers: `def test_...(ordercast_cluster: MakesClusters)`."""

    def __call__(
        self, n: int = 3, *, in_process: bool = True, **options: Unpack[ClusterKeywords]
    ) -> LocalCluster:
        """A cluster of n members, not started yet: `async with` does that."""


@pytest.fixture
def ordercast_cluster() -> MakesClusters:
    """Makes clusters like `LocalCluster`, in this process unless told otherwise."""

    from ordercast.runtime.local_cluster import LocalCluster  # only tests that use it pay for it

    def make(
        n: int = 3, *, in_process: bool = True, **options: Unpack[ClusterKeywords]
    ) -> LocalCluster:
        return LocalCluster(n, in_process=in_process, **options)

    return make


MOST_SENTENCES = 3  # of each property, in the text of a failed assertion


def assert_order(
    traces: str | Path | Sequence[str | Path], *expected: str, quiescent: bool = False
) -> None:
    """Fail unless the recorded runs kept what is expected: orders or properties, as in
    `ordercast check --expect`; without any, what the traces declare.

    `quiescent` takes every log as complete, also one that was cut off. What a trace does not decide
    fails, too. Needs the extra 'judge', and no Spark.
    """
    from ordercast.judge.check import check_paths

    paths = [traces] if isinstance(traces, str | Path) else list(traces)
    outcome = check_paths(paths, expect=expected, quiescent=quiescent, figures=False)
    broken = [line for run in outcome.runs for line in _broken(run)]
    if broken:
        raise AssertionError("\n".join(broken))


def _broken(run: RunOutcome) -> list[str]:
    """Each expectation that does not hold in this run, with the first sentences on it."""
    tables = dict(run.domains)
    lines: list[str] = []
    for one in run.expected:
        if one.verdict in ("ok", "n/a"):
            continue
        table = run.table if one.domain is None else tables.get(one.domain, run.table)
        sentences = [v.sentence for v in table.violations if v.property == one.property]
        told = sentences or table.doubts[one.property]
        lines.append(f"run {run.run!r}: {one.property} is {one.verdict} ({one.because})")
        lines += [f"  {sentence}" for sentence in told[:MOST_SENTENCES]]
        more = table.counts[one.property] - MOST_SENTENCES
        if more > 0:
            lines.append(f"  and {more:,} more")
    return lines
