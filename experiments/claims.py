"""A claim of a source, and what a table says of it: a section of docs/RESULTS.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from experiments.drawing import MEDIANS, Figure
from experiments.rows import Row

Holds = Literal["yes", "no", "in part", "no difference shown", "nothing was claimed"]


@dataclass(frozen=True)
class Claim:
    """Every number in `measured` comes from the table; `holds` follows from such numbers."""

    claim: str
    where: str  # source and section
    measured: str  # in words, and tables in Markdown
    holds: Holds
    why: str = ""  # where it does not hold: why not


class Experiment(Protocol):
    """A module of this folder, beside the plan of the same name."""

    TITLE: str
    ABOUT: str
    """A paragraph: what is run, and why so."""

    def figure(self, rows: list[Row]) -> Figure: ...  # without a caption

    def claims(self, rows: list[Row]) -> list[Claim]: ...


def caption(about: dict[str, Any], rows: list[Row], shows: str = MEDIANS) -> tuple[str, ...]:
    """Under a figure: how many runs, which seeds, which versions, whose costs."""
    seeds, versions = about["seeds"], about["versions"]
    span = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    code = sorted(set(about["code"].values()))
    digest = code[0] if len(code) == 1 else f"{len(code)} digests, see the table"
    return (
        f"{about['runs']:,} simulated runs, {verdicts(rows)}; {span}: {shows}.",
        f"ordercast {versions['ordercast']} (code of the runs: {digest}), "
        f"Python {versions['python']}, PySpark {versions['pyspark']}. {calibrated(about)}",
    )


def verdicts(rows: list[Row]) -> str:
    """In words: how many kept what their protocol promises."""
    bad = sum(row["verdict"] != "kept" for row in rows)
    return f"{bad} of them not kept" if bad else "every one judged and kept"


def calibrated(about: dict[str, Any]) -> str:
    """Whose processor the costs are of. Those that nobody measured have no date."""
    found = [one["machine"] for one in about["calibrations"].values()]
    if not found:
        return "Work takes no time."
    if not any("when" in machine for machine in found):
        return f"Costs of work: {found[0].get('system', 'made up')}."
    machines = {(one.get("system", "?"), one.get("when", "?")[:10]) for one in found}
    told = "; ".join(f"{system}, {day}" for system, day in sorted(machines))
    each = "one for each protocol" if len(about["calibrations"]) > 1 else "one for all protocols"
    return f"Costs of work: calibrated on {told}, {each}."


def markdown_table(head: list[str], rows: Sequence[Sequence[object]]) -> str:
    """Numbers to the right."""
    numbers = [all(isinstance(row[k], int | float) for row in rows) for k in range(len(head))]
    lines = [head, ["---:" if right else "---" for right in numbers]]
    lines += [[_cell(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    """Three digits, and no fewer than there are before the point."""
    if not isinstance(value, float):
        return str(value)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"
