"""docs/RESULTS.md, from the tables that are in the repository. No number in it is typed."""

from __future__ import annotations

from pathlib import Path

from experiments.catalogue import EXPERIMENTS
from experiments.claims import Claim, calibrated, caption, verdicts
from experiments.drawing import draw
from ordercast.experiments import read_runs

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
PAGE = FOLDER.parent / "docs" / "RESULTS.md"

HEAD = """\
# Results

What the sources claim, and what we measured. Every number and every verdict on this page is made by
code from a table that `make experiments` produced; [EXPERIMENTS.md](EXPERIMENTS.md) tells how.
`make docs` writes the page anew from the tables in the repository.

A figure is of simulated runs. Delays and processor times follow from the
[calibrated cost model](MEASURE.md#simulated-time-that-means-something), so they are about ratios on
one kind of computer, and about one message per packet.
"""

TAIL = """
## Claims that are not measured here

- 001: first-in first-out order needs groups that do not overlap. Shown by tests: `fifo` breaks the
  order across groups, `global_fifo` keeps it.
- 002, theorem 4: concurrent messages are ordered by accident. Its rate is measured from the vectors
  in the packets (`python -m bench.false_order`), not from a table of a sweep: the figures are in
  [decision 17](decisions/0017-two-layers.md).
- 003: only the loss of a broadcast is a major issue. It is not so: a lost REQUEST loses the message
  ([SOURCES.md](SOURCES.md), E-J1). That is shown by a test, and mended.
- 004: a destination that is in one group only waits no longer than with CBCAST; where groups make
  no cycle, the numbers of a process's own groups are enough; and the comparison with protocols that
  are not built here.
"""


def draw_experiment(name: str, table: Path, into: Path, *, png: bool = True) -> list[Path]:
    """The figure of an experiment from a table of its sweep."""
    rows, about = read_runs(table)
    figure = EXPERIMENTS[name].figure(rows)
    captioned = type(figure)(
        figure.title, figure.panels, (*figure.caption, *caption(about, rows)), figure.columns
    )
    return draw(captioned, into / f"{name}.svg", png=png)


def page(results: Path = RESULTS) -> str:
    """The whole page, of those experiments that have a table in this folder."""
    found = [name for name in EXPERIMENTS if (results / f"{name}.parquet").exists()]
    listed = "\n".join(
        f"- [{EXPERIMENTS[n].TITLE}](#{_anchor(EXPERIMENTS[n].TITLE)})" for n in found
    )
    return "\n".join([HEAD, listed, *(_section(name, results) for name in found), TAIL])


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def _section(name: str, results: Path) -> str:
    experiment = EXPERIMENTS[name]
    rows, about = read_runs(results / f"{name}.parquet")
    where, seeds = "../experiments", len(about["seeds"])
    made = (
        f"[plan]({where}/{name}.toml), [table]({where}/results/{name}.parquet): "
        f"{about['runs']:,} runs, {verdicts(rows)}, {seeds} seed{'s' * (seeds > 1)}. "
        f"{calibrated(about)}"
    )
    parts = [
        f"\n## {experiment.TITLE}",
        experiment.ABOUT,
        f"![{experiment.TITLE}]({where}/results/{name}.svg)",
        made,
        *map(told, experiment.claims(rows)),
    ]
    return "\n\n".join(parts) + "\n"


def told(claim: Claim) -> str:
    """A claim, and what became of it."""
    lines = [
        f"**Claim.** {claim.claim}",
        f"**Where it stands.** {claim.where}.",
        f"**What we measured.** {claim.measured}",
        f"**Does it hold?** {claim.holds.capitalize()}.",
    ]
    if claim.why:
        asks = "And yet" if claim.holds == "yes" else "Why not"
        lines.append(f"**{asks}.** {claim.why}")
    return "\n\n".join(lines)
