"""For the tests of applications: a pytest fixture that makes clusters.

def test_everybody_hears_it(ordercast_cluster):
    async def scenario():
        async with ordercast_cluster(3, order="total") as cluster:
            await cluster.groups[0].multicast(b"hello")
            ...
    asyncio.run(scenario())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Unpack

import pytest

if TYPE_CHECKING:
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
