"""docs/MEASURE.md is true: its example of the cost model shows a limit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ordercast.simulation import CostModel, Performance

PAGE = (Path(__file__).parents[2] / "docs" / "MEASURE.md").read_text()


def test_the_example_of_the_cost_model_runs_into_its_limit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [example] = [e for e in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "costs=" in e]
    exec(example, {})
    rates = [int(line.split("/s")[0]) for line in capsys.readouterr().out.splitlines()]
    assert rates[1] > 4 * rates[0]  # five times the load
    assert rates[2] < 2 * rates[1]  # four times the load


def test_the_page_names_every_cost_and_every_figure() -> None:
    for name in (*CostModel.__struct_fields__, *Performance.__struct_fields__):
        assert f"`{name}`" in PAGE, name
