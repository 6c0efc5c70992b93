"""Flat against two-layered groups: where the curves cross, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from experiments import two_layers_delay, two_layers_split
from experiments.crossover import crossing, crossover, delay_ms, told, told_range, wire_us
from experiments.two_layers_model import C0, C1, flat_us, layered_us, predicted


def run(protocol: str, members: int, ms: float, **at: Any) -> dict[str, Any]:
    usual = {"broadcast": True, "delay": "constant 10", "entry_cost": 1.0, "work_cost": 1.0}
    return {"protocol": protocol, "members": members, "delay_all_ms": ms, **usual, **at}


def runs(gains: dict[int, float], **at: Any) -> list[dict[str, Any]]:
    """Of each size one run flat and one in two layers, which is so much faster."""
    flat = [run("vector", n, 10.0, **at) for n in gains]
    return flat + [run("two_layered", n, 10.0 - gain, **at) for n, gain in gains.items()]


def test_the_crossover_lies_between_the_sizes_where_the_gain_changes_its_sign() -> None:
    rows = runs({9: 1.0, 100: -1.0, 200: 3.0, 400: 5.0})
    assert crossover(rows) == pytest.approx(125)
    assert told(crossover(rows), rows) == "125"


def test_a_crossover_is_told_only_as_far_as_was_measured() -> None:
    never, always = runs({9: 1.0, 400: -1.0}), runs({9: 1.0, 400: 1.0})
    assert crossover(never) is None
    assert told(crossover(never), never) == "not up to 400"
    assert crossover(always) == 9
    assert told(crossover(always), always) == "9 or less"


def test_the_formulas_of_the_source_cross_at_the_size_it_names() -> None:
    assert predicted(C1, 0.0, broadcast=True) == pytest.approx(900, abs=5)
    assert predicted(C0 / 50, 0.0, broadcast=True) == pytest.approx(167, abs=2)
    found = predicted(C1, 0.0, broadcast=False)
    assert found is not None and found <= 11
    assert flat_us(400, C1, 0.0, broadcast=False) > layered_us(400, C1, 0.0, broadcast=False)


@pytest.mark.parametrize(
    ("gains", "holds"),
    [({9: 1.0, 900: 2.0}, "yes"), ({9: -1.0, 900: 2.0}, "in part"), ({9: 1.0, 900: -1.0}, "no")],
)
def test_two_layers_are_faster_everywhere_or_from_a_size_on_or_never(
    gains: dict[int, float], holds: str
) -> None:
    gains = {n: 9 * gain / 2 for n, gain in gains.items()}  # beyond doubt, though costs are off
    rows = runs(gains, broadcast=False) + runs(gains) + runs(gains, entry_cost=4.0)
    one_to_one, *_ = two_layers_delay.claims(rows)
    assert one_to_one.holds == holds


@pytest.mark.parametrize(("last", "holds"), [(900, "yes"), (2500, "no")])
def test_the_size_that_the_source_names_is_the_measure(last: int, holds: str) -> None:
    gains = {9: -9.0, last - 1: -9.0, last: 9.0}
    rows = runs(gains, broadcast=False) + runs(gains) + runs(gains, entry_cost=4.0)
    _, broadcast = two_layers_delay.claims(rows)
    assert broadcast.holds == holds


def test_costs_that_are_off_make_a_crossover_a_range() -> None:
    rows = runs({100: -5.0, 200: -1.0, 300: 1.0, 400: 5.0})
    found = crossing(rows, 0.0, 0.05)
    assert found.at == pytest.approx(250)
    assert found.earliest is not None and 200 < found.earliest < 250
    assert found.latest is not None and 250 < found.latest < 300
    assert told_range(found, rows) == f"250 ({found.earliest:,.0f} to {found.latest:,.0f})"
    assert told_range(crossing(rows, 0.5, 0.5), rows).endswith("to more)")


def test_slow_motion_is_taken_out() -> None:
    slow = run("vector", 9, 200.0, work_cost=100.0, delay="constant 1000")
    assert (wire_us(slow), delay_ms(slow)) == (10, 2)


def cut(gateway: dict[tuple[int, int], float], local: float = 1.0) -> list[dict[str, Any]]:
    """Runs of a plan of splits: by size and number of subgroups what a gateway works."""
    return [
        run(
            "two_layered", n, us, subgroups=k, busiest_us_per_message=us, broadcast=broadcast,
            median_us_per_message=local * n, sent=1,
            packet_kinds={"Global": k - 1, "GlobalConfirmation": k * (k - 1)},
        )
        for (n, k), us in gateway.items()
        for broadcast in (False, True)
    ]  # fmt: skip


def test_the_root_need_not_be_the_best_only_nearly_as_good() -> None:
    def at_root(us: float) -> list[dict[str, Any]]:
        return cut({(100, 5): 20, (100, 10): us, (100, 20): 10, (100, 33): 30,
                    (400, 10): 99 * us, (400, 20): 40 * us})  # fmt: skip

    for us, holds in ((10.5, "yes"), (12.0, "in part")):
        least, *_, delay = two_layers_split.claims(at_root(us))
        assert (least.holds, delay.holds) == (holds, holds)


@pytest.mark.parametrize(("grown", "holds"), [(4.0, "yes"), (2.0, "in part"), (8.0, "no")])
def test_work_that_grows_slower_than_its_bound_holds_in_part(grown: float, holds: str) -> None:
    rows = cut({(100, 5): 99.0, (100, 10): 1.0, (400, 10): 99.0, (400, 20): grown})
    _, gateway, local, between, _ = two_layers_split.claims(rows)
    assert (gateway.holds, local.holds, between.holds) == (holds, "yes", "yes")
