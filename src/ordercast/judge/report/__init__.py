"""One HTML file that says it all and opens anywhere, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ordercast.judge.outcome import Outcome
from ordercast.judge.report.page import page


def write_report(outcome: Outcome, path: str | Path, *, story: Sequence[str] = ()) -> Path:
    """Write the report to `path`, making the folders above it; `story` as for `page`."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(outcome, story=story), encoding="utf-8")
    return path


__all__ = ["page", "write_report"]
