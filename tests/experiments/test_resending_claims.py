"""Window against constant limits: when a difference counts, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from experiments import resending


def runs(constant: list[float], window: list[float], **at: Any) -> list[dict[str, Any]]:
    """For each seed one run of either way, with this delay; resends are as many everywhere."""
    usual = {
        "loss": 0.1, "outage_ms": 0.0, "delay": "uniform 500 1500", "every_us": 1000.0, "sent": 1,
        "retransmissions": 5, "remarks": {}, "span_ms": 1.0,
    }  # fmt: skip
    return [
        {"options": f'{{"constant_resends":{way}}}', "seed": seed, "delay_mean_ms": ms,
         **usual, **at}
        for way, delays in (("true", constant), ("false", window))
        for seed, ms in enumerate(delays)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("window", "sign"),
    [
        ([90.0, 80.0, 70.0], -1),
        ([110.0, 120.0, 130.0], 1),
        ([70.0, 80.0, 101.0], 0),  # seeds disagree
        ([99.5, 99.5, 99.0], 0),  # slight
        ([100.0, 100.0, 100.0], 0),
    ],
)
def test_a_difference_counts_if_all_seeds_agree_on_it(window: list[float], sign: int) -> None:
    assert resending.sign(runs([100.0] * 3, window), "delay_mean_ms") == sign


@pytest.mark.parametrize(
    ("window", "holds"), [(50.0, "yes"), (200.0, "no"), (100.0, "no difference shown")]
)
def test_what_is_not_shown_is_not_claimed(window: float, holds: str) -> None:
    lossy = runs([100.0] * 3, [window] * 3)
    cut_off = runs([100.0] * 3, [window] * 3, loss=0.0, outage_ms=5.0)
    assert [claim.holds for claim in resending.claims(lossy + cut_off)] == [holds, holds]
