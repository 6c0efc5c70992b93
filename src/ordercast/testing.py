"""For the tests of applications: a pytest fixture that makes clusters.

def test_everybody_hears_it(ordercast_cluster):
    async def scenario():
        async with ordercast_cluster(3, order="total") as cluster:
            await cluster.groups[0].multicast(b"hello")
            ...
    asyncio.run(scenario())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ordercast.runtime.local_cluster import LocalCluster


@pytest.fixture
def ordercast_cluster() -> Callable[..., LocalCluster]:
    """Makes clusters like `LocalCluster`, in this process unless told otherwise."""

    from ordercast.runtime.local_cluster import LocalCluster  # only tests that use it pay for it

    def make(n: int = 3, *, in_process: bool = True, **options: Any) -> LocalCluster:
        return LocalCluster(n, in_process=in_process, **options)

    return make
