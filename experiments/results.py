"""docs/RESULTS.md, from the tables that are in the repository. No number in it is typed."""

from __future__ import annotations

from dataclasses import replace
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

- 000: to join or leave a group takes a single RPC to a sequencer. Joins are timed on live nodes,
  with and without a move, by `bench/sequencing_scale.py`.
- 000: an open group costs an extra point-to-point acknowledgement. A sender outside the group is
  told of its numbers by a packet of its own; no run above has such senders.
- 003: only the loss of a broadcast is a major issue. It is not so: a lost REQUEST loses the message
  ([SOURCES.md](SOURCES.md), E-J1). That is shown by a test, and mended.
- 004: the comparison with [MR93], which is not built here; `slow` stands for it above.
- 001: broadcast abuses bandwidth. The simulated network brings a packet to nobody that it is not
  for.
- 004: a vector clock is a lower bound for a timestamp that allows delivery as early as possible,
  and Slow is optimal in space. No run can show that nothing smaller would do. Of those built here
  `slow` has the smallest header, and none that delivers as early as possible a smaller one than
  `cbcast`.
- What the sources state of single headers is shown by tests, not by runs. 002, theorems 1 to 3:
  that a cause is forwarded and ordered before its effect (`tests/protocols/test_two_layered.py`, D1
  and D2; the example of figure 3 in `tests/errata/test_errata_002.py`); that the order holds is
  judged in every run. 004, pr1 to pr3: a later message has a higher number, the converse fails
  (`tests/machinery/test_blocks.py`, CA1, CA2 and figure 2); pr3 follows. pv2 and pv3: what depends
  on nothing waits for nothing (`tests/protocols/test_fast.py`, `test_relative.py`), and no exact
  protocol waited needlessly in any run above. pv1 holds in one group only: here a process has one
  counter for all its groups (E-M6).
"""


def draw_experiment(name: str, table: Path, into: Path, *, png: bool = True) -> list[Path]:
    """The figure of an experiment from a table of its sweep."""
    rows, about = read_runs(table)
    figure = EXPERIMENTS[name].figure(rows)
    told_below = (*figure.caption, *caption(about, rows, figure.shows))
    return draw(replace(figure, caption=told_below), into / f"{name}.svg", png=png)


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
        f"**What we measured.**{_apart(claim.measured)}{claim.measured}",
        f"**Does it hold?** {claim.holds.capitalize()}.",
    ]
    if claim.why:
        asks = {"yes": "And yet", "nothing was claimed": "What it says"}.get(claim.holds, "Why not")
        lines.append(f"**{asks}.** {claim.why}")
    return "\n\n".join(lines)


def _apart(measured: str) -> str:
    """A table begins a paragraph of its own."""
    return "\n\n" if measured.startswith("|") else " "
