"""Changes of groups under random schedules: joins, leaves, moves, crashes, guests, traffic."""

from __future__ import annotations

import random

import pytest

from tests.views.campaign import one

ORDERS = ("total", "hybrid", "causal-total", "global-total")
KINDS = (
    (0, 1, ()),
    (0, 1, ("consumes", "apart")),
    (0, 1, ("lossy", "consumes")),
    (0, 1, ("storm", "restless", "arrivals")),
    (1, 1, ("storm", "apart", "arrivals")),
    (2, 2, ("storm",)),
    (2, 2, ("storm", "restless", "arrivals", "lossy", "apart", "consumes")),
    (0, 3, ("arrivals",)),
)
RUNS = [(order, *kind) for order in ORDERS for kind in KINDS]

MENDED = [  # schedules that found a fault once
    (20935, "hybrid", 1, 1, ()),
    (40144, "causal-total", 0, 1, ("consumes",)),
    (70507, "hybrid", 0, 1, ("lossy", "apart")),
    (70484, "causal-total", 0, 1, ("lossy", "apart")),
    (80793, "hybrid", 2, 2, ("lossy", "apart", "consumes")),
    (200018, "hybrid", 1, 1, ("storm", "apart", "arrivals")),
    (1013, "hybrid", 0, 1, ("arrivals",)),
    (1008, "hybrid", 0, 1, ("restless",)),
    (400000, "hybrid", 0, 1, ("storm",)),
    (910316, "hybrid", 0, 1, ("storm", "restless", "arrivals")),
    (910279, "causal-total", 0, 1, ("storm", "restless", "arrivals")),
]


def keep_every_promise(seed, order, k, crashes, flags):
    _, broken = one(seed, order, k, crashes, flags)
    again = f"python -m tests.views.campaign {order} 1 {seed} {k} {crashes} {' '.join(flags)}"
    assert not broken, f"{sorted(broken)}: {again}"


@pytest.mark.parametrize(("order", "k", "crashes", "flags"), RUNS)
def test_every_promise_is_kept_whatever_changes_under_traffic(order, k, crashes, flags):
    for seed in range(4):
        keep_every_promise(seed, order, k, crashes, flags)


@pytest.mark.parametrize(("order", "k", "crashes", "flags"), RUNS)
def test_every_promise_is_kept_in_a_schedule_that_nobody_has_seen(order, k, crashes, flags):
    keep_every_promise(random.SystemRandom().randrange(2**32), order, k, crashes, flags)


@pytest.mark.parametrize(("seed", "order", "k", "crashes", "flags"), MENDED)
def test_schedules_that_once_broke_a_promise_keep_it(seed, order, k, crashes, flags):
    keep_every_promise(seed, order, k, crashes, flags)
