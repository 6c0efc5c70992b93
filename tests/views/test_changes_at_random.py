"""Changes of groups under random schedules: joins, leaves, moves, crashes, guests, traffic."""

from __future__ import annotations

import pytest

from tests.views.campaign import one

RUNS = [
    (order, k, crashes, flags)
    for order in ("total", "hybrid", "causal-total", "global-total")
    for k, crashes, flags in (
        (0, 1, ()),
        (0, 1, ("consumes", "apart")),
        (0, 1, ("lossy", "consumes")),
        (2, 2, ()),
    )
]


@pytest.mark.parametrize(("order", "k", "crashes", "flags"), RUNS)
def test_every_promise_is_kept_whatever_changes_under_traffic(order, k, crashes, flags):
    for seed in range(12):
        _, broken = one(seed, order, k, crashes, flags)
        assert not broken, f"python -m tests.views.campaign {order} 1 {seed} {k} {crashes} {flags}"
