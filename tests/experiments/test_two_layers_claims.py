"""Flat against two-layered groups: where the curves cross, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from experiments import two_layers_delay, two_layers_split
from experiments.crossover import crossover, told
from experiments.two_layers_model import C0, C1, flat_us, layered_us, predicted


def run(protocol: str, members: int, ms: float, **at: Any) -> dict[str, Any]:
    usual = {"broadcast": True, "delay": "constant 10", "entry_cost": 1.0}
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
    rows = runs(gains, broadcast=False) + runs(gains) + runs(gains, entry_cost=4.0)
    one_to_one, *_ = two_layers_delay.claims(rows)
    assert one_to_one.holds == holds


@pytest.mark.parametrize(("last", "holds"), [(900, "yes"), (2500, "no")])
def test_the_size_that_the_source_names_is_the_measure(last: int, holds: str) -> None:
    gains = {9: -1.0, last - 1: -1e-9, last: 1.0}
    rows = runs(gains, broadcast=False) + runs(gains) + runs(gains, entry_cost=4.0)
    _, broadcast, depends = two_layers_delay.claims(rows)
    assert (broadcast.holds, depends.holds) == (holds, holds)


def test_the_root_need_not_be_the_best_only_nearly_as_good() -> None:
    def cut(at_root: float) -> list[dict[str, Any]]:
        work = {5: 20.0, 10: at_root, 20: 10.0, 50: 30.0}
        return [
            run("two_layered", 100, us, subgroups=k, busiest_us_per_message=us, broadcast=broadcast)
            for k, us in work.items()
            for broadcast in (False, True)
        ]

    assert [claim.holds for claim in two_layers_split.claims(cut(10.5))] == ["yes", "yes"]
    assert [claim.holds for claim in two_layers_split.claims(cut(12.0))] == ["no", "no"]
