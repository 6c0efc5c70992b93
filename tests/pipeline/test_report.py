"""The report: says everything, loads nothing, and text from a trace stays text."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from notation import trace
from ordercast.pipeline.expectations import ALWAYS
from ordercast.pipeline.kernels.judge import judge_table
from ordercast.pipeline.outcome import (
    Expectation,
    GroupFacts,
    Latency,
    Outcome,
    RunFacts,
    RunOutcome,
    Table,
)
from ordercast.pipeline.report import page, write_report
from ordercast.pipeline.report.page import MOST_DETAILED_RUNS
from ordercast.pipeline.report.plot import duration
from ordercast.trace.schema import PROPERTIES, Event, Violation
from ordercast.trace.tables import event_table

SWAPPED = "p: send a g; send b g; end\nq: deliver b g; deliver a g; end"
CLEAN = "p: send a g; deliver a g; end\nq: deliver a g; end"
SKIPPED = "group g: p,q\np: deliver a g; deliver b g; end\nq: deliver b g; end"
NASTY = "<script>alert('x')</script>&\"'"


def table_of(events: Sequence[Event]) -> Table:
    judged = judge_table(event_table(events))
    return Table(
        verdicts={one.property: one.verdict for one in judged},
        violations=tuple(
            Violation(one.property, sentence, witness)
            for one in judged
            for sentence, witness in one.findings.evidence
        ),
        counts={one.property: one.findings.violations for one in judged},
        doubts={one.property: tuple(one.findings.reasons) for one in judged},
    )


def outcome_of(events: Sequence[Event], *names: str, run: str = "") -> Outcome:
    table = table_of(events)
    wanted = names or ALWAYS
    outcome = RunOutcome(
        run=run,
        table=table,
        domains=(),
        expected=tuple(Expectation(n, table.verdicts[n], "asked for") for n in wanted),
        facts=RunFacts(len(events), 2, 2, 0, 2, ("r",), 1, 0),
        groups=(GroupFacts("g", "fifo", "basic", "group", ("p", "q"), 2, 2),),
        latencies=(
            Latency("g", 200, ((0, 1_000), (50, 2_000_000), (90, 5_000_000), (99, 9_000_000),
                               (100, 10_000_000))),
        ),
    )  # fmt: skip
    return Outcome((outcome,))


class Reader(HTMLParser):
    """Collects elements and text, and insists that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_all_32_verdicts_are_in_words_and_not_only_in_colours() -> None:
    read = Reader(page(outcome_of(trace(SWAPPED), "fifo.group")))
    plain = [name for name in PROPERTIES if not name.endswith(".uniform")]
    assert all(name in read.words for name in plain)
    assert "✗ violated" in read.words and "✓ ok" in read.words and "– n/a" in read.words


def test_the_headline_tells_the_outcome() -> None:
    assert "1 of 1 expected properties violated" in page(outcome_of(trace(SWAPPED), "fifo.group"))
    assert "All 4 expected properties hold" in page(outcome_of(trace(CLEAN)))
    assert "1 could not be decided" in page(outcome_of(trace(CLEAN), "views"))


def test_a_violation_has_a_sentence_and_a_diagram_with_an_arrow_per_delivery() -> None:
    text = page(outcome_of(trace(SWAPPED), "fifo.group"))
    assert "q delivers b before a, but p sent a before b" in text
    drawing = text[text.index('class="diagram"') :].split("</svg>")[0]
    assert drawing.count('class="message"') == 2
    assert drawing.count('class="ring"') == 2
    assert drawing.count('class="process"') == 2


def test_a_missing_delivery_is_drawn_as_a_cross() -> None:
    text = page(outcome_of(trace(SKIPPED), "total.gapless"))
    assert "never a" in text and 'class="cross"' in text


def test_a_delivery_before_its_own_send_can_be_drawn() -> None:
    assert 'class="diagram"' in page(outcome_of(trace("p: deliver a g; send a g; end")))


def test_why_something_is_inconclusive_is_told() -> None:
    cut = trace("group g: p,q\np: send a g; deliver a g; end\nq: receive a g")
    read = Reader(page(outcome_of(cut, "agreement")))
    assert "q never delivers a of p, which p delivers; the log of q has no end" in read.words


def test_text_from_the_trace_stays_text() -> None:
    events = [
        replace(
            e,
            process=e.process and NASTY + e.process,
            message=e.message and NASTY + e.message,
            group=NASTY,
        )
        for e in trace(SWAPPED)
    ]
    text = page(outcome_of(events, "fifo.group", run=NASTY))
    read = Reader(text)
    assert "script" not in read.tags
    assert NASTY in read.words


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    path = write_report(outcome_of(trace(SWAPPED)), tmp_path / "new" / "report.html")
    text = path.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"\b(src|href)=|@import|https?:|url\((?!#)", text)


def test_many_runs_are_listed_and_the_worst_shown_in_full() -> None:
    runs = [outcome_of(trace(CLEAN), run=f"good{k}").runs[0] for k in range(MOST_DETAILED_RUNS)]
    runs.append(outcome_of(trace(SWAPPED), "fifo.group", run="broken").runs[0])
    read = Reader(page(Outcome(tuple(runs))))
    assert "Run broken" in read.words
    assert read.words.count("Run good") == MOST_DETAILED_RUNS - 1


@pytest.mark.parametrize(
    ("nanoseconds", "text"), [(0, "0"), (950, "950 ns"), (1_500_000, "1.5 ms"), (-2e9, "-2 s")]
)
def test_durations_have_the_unit_that_reads_best(nanoseconds: float, text: str) -> None:
    assert duration(nanoseconds) == text


def test_a_browser_draws_the_report(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    report = write_report(outcome_of(trace(SWAPPED), "fifo.group"), tmp_path / "report.html")
    picture = tmp_path / "report.png"
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu",
         f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1100,2400",
         f"--screenshot={picture}", report.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    assert picture.stat().st_size > 20_000  # an empty page is far smaller
