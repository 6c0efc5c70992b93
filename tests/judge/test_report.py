"""The report: says everything, loads nothing, and text from a trace stays text."""

from __future__ import annotations

import re
from dataclasses import replace as changed
from html.parser import HTMLParser
from pathlib import Path

from msgspec.structs import replace

from notation import trace
from ordercast.judge.figures import Figures, GroupFigures
from ordercast.judge.outcome import Outcome
from ordercast.judge.report import page, write_report
from ordercast.judge.report.costs import MOST_GROUPS
from ordercast.judge.report.evidence import MOST_CARDS
from ordercast.judge.report.names import LONGEST, LONGEST_IN_TABLE
from ordercast.judge.report.page import MOST_DETAILED_RUNS, MOST_LISTED_RUNS
from ordercast.judge.report.plot import MOST_LINES
from ordercast.judge.report.scene import MOST_EVENTS
from ordercast.trace.schema import PROPERTIES
from reported import (
    CLEAN,
    CUT,
    LONG,
    NASTY,
    OPPOSITE,
    SKIPPED,
    SWAPPED,
    TURNED,
    figures,
    ill,
    outcome_of,
    run_of,
    spread,
)


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


def diagram(text: str) -> str:
    """The first diagram in a card."""
    return text[text.index('class="card') :].split("<svg")[1].split("</svg>")[0]


def test_all_32_verdicts_are_in_words_and_not_only_in_colours() -> None:
    read = Reader(page(outcome_of(trace(SWAPPED), "fifo.group")))
    plain = [name for name in PROPERTIES if not name.endswith(".uniform")]
    assert all(name in read.words for name in plain)
    assert "✗ violated" in read.words and "✓ ok" in read.words and "– n/a" in read.words


def test_the_headline_tells_the_outcome() -> None:
    broken = page(outcome_of(trace(SWAPPED), "fifo.group"))
    assert '"headline">FIFO order within each group was broken once<' in broken
    assert "1 of 1 expected properties violated" in broken
    assert "All 4 properties expected of this run hold" in page(outcome_of(trace(CLEAN)))
    undecided = page(outcome_of(trace(CLEAN), "views"))
    assert "Nothing is violated, but this could not be decided: Consistent views" in undecided
    assert "1 of 1 expected properties could not be decided" in undecided


def test_what_happened_is_told_before_the_verdicts_and_stays_text() -> None:
    html = page(outcome_of(trace(CLEAN)), story=["kill -9 of <b>dora</b>"])
    assert "<li>kill -9 of &lt;b&gt;dora&lt;/b&gt;</li>" in html
    assert html.index("What happened") < html.index("What was expected")
    assert "What happened" not in page(outcome_of(trace(CLEAN)))


def test_a_violation_has_a_sentence_and_a_diagram_with_an_arrow_per_delivery() -> None:
    text = page(outcome_of(trace(SWAPPED), "fifo.group"))
    assert "q delivers b before a, but p sent a before b" in text
    drawing = diagram(text)
    assert drawing.count('class="message') == 2
    assert drawing.count('class="process"') == 2


def test_the_delivery_that_came_too_early_is_ringed_and_no_other() -> None:
    drawing = diagram(page(outcome_of(trace(SWAPPED), "fifo.group")))
    assert drawing.count('class="ring"') == 1
    assert re.search(r'class="ring".*?<title>q: deliver b, index 1</title>', drawing)


def test_a_missing_delivery_is_drawn_as_a_cross() -> None:
    drawing = diagram(page(outcome_of(trace(SKIPPED), "total.gapless")))
    assert "never a" in drawing and drawing.count('class="cross"') == 1


def test_each_edge_of_a_cycle_names_the_process_that_holds_it() -> None:
    text = page(outcome_of(trace(OPPOSITE), "total.group"))
    drawing = diagram(text)
    assert drawing.count('class="edge"') == 2 and 'class="ring"' not in drawing
    named = re.findall(r'class="label edgename">(\w+)<', drawing)
    assert sorted(named) == ["p", "q"]
    told = text[text.index('class="steps"') :].split("</p>")[0]
    assert re.sub("<.*?>", "", told).endswith(("a— p → b— q → a", "b— q → a— p → b"))


def test_the_same_cycle_is_shown_once_for_all_properties_that_it_breaks() -> None:
    text = page(outcome_of(trace(OPPOSITE), "total.group", "total.pairwise", "total.gapless"))
    assert text.split("All properties, on")[0].count("<article") == 1


def test_a_causal_chain_is_written_out() -> None:
    chain = trace(
        "p: send a g; end\nq: deliver a g; send x g; end\n"
        "r: deliver a g; deliver x g; send b g; end\ns: deliver b g; deliver a g; end"
    )
    longer = [e for e in chain if (e.process, e.message, e.kind) != ("r", "a", "deliver")]
    text = re.sub("<.*?>", "", page(outcome_of(longer, "causal.global")))
    assert "Sent one after the other:a— before → x— before → b" in text


def test_two_lists_of_members_are_shown_side_by_side_with_what_differs() -> None:
    lists = "p: view 1 g p,q,r; end\nq: view 1 g p,q,s; end"
    text = page(outcome_of(trace(lists), "views"))
    assert re.findall(r'class="chip odd">(\w+)<', text)[:2] == ["r", "s"]
    order = "p: view 1 g p,q,r; end\nq: view 1 g p,r,q; end"
    text = page(outcome_of(trace(order), "views"))
    assert re.findall(r'class="chip odd">(\w+)<', text)[:4] == ["q", "r", "r", "q"]


def test_what_only_one_of_two_delivered_between_views_is_ringed_there_and_crossed_here() -> None:
    text = "p: view 1 g p,q; send a g; deliver a g; view 2 g p,q; end\n"
    text += "q: view 1 g p,q; view 2 g p,q; end"
    drawing = diagram(page(outcome_of(trace(text), "vsync")))
    assert drawing.count('class="ring"') == 1 and drawing.count('class="cross"') == 1
    assert "q never delivers a" in drawing


def test_deliveries_before_their_own_sends_are_ringed_and_told_in_a_ring() -> None:
    text = page(outcome_of(trace("p: deliver a g; send b g; end\nq: deliver b g; send a g; end")))
    assert diagram(text).count('class="ring"') == 2
    assert "each arrow names the process that delivers the first message before it sends" in text


def test_why_something_is_inconclusive_is_told_and_what_would_decide_it() -> None:
    read = Reader(page(outcome_of(trace(CUT), "agreement")))
    assert "q never delivers a of p, which p delivers; the log of q has no end" in read.words
    assert "A log that says it is complete." in read.words and "--quiescent" in read.words


def test_lost_records_are_not_answered_with_quiescent() -> None:
    lossy = trace(
        "group g: p,q\np: send a g; send b g; deliver a g; deliver b g; end\n"
        "q: lost; deliver b g; end"
    )
    read = Reader(page(outcome_of(lossy, "fifo.group")))
    assert "A run without lost records." in read.words and "--quiescent" not in read.words


def test_what_cannot_be_judged_at_all_says_which_events_are_missing() -> None:
    read = Reader(page(outcome_of(trace(CLEAN), "views")))
    assert "A trace that records view events." in read.words


def test_a_run_without_a_declared_order_is_told_how_to_ask_for_one() -> None:
    run = run_of(trace(CLEAN))
    always = tuple(changed(one, because="always expected") for one in run.expected)
    text = page(Outcome((changed(run, expected=always),)))
    assert "No order was declared or asked for" in text
    assert "No order was declared" not in page(outcome_of(trace(CLEAN), "fifo.group"))


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


def test_signs_that_cannot_be_seen_or_turn_the_text_round_are_spelled_out() -> None:
    events = [replace(e, message=e.message and TURNED + e.message) for e in trace(SWAPPED)]
    text = page(outcome_of(events, "fifo.group"))
    assert "\u202e" not in text and "\0" not in text
    assert r"\u202eevil\x00a" in text


def test_long_names_are_shortened_and_stay_distinct() -> None:
    events = [replace(e, message=e.message and e.message + LONG) for e in trace(SWAPPED)]
    text = page(outcome_of([*events], "fifo.group"))
    labels = set(re.findall(r'class="label[^"]*">([^<]+)<', diagram(text)))
    assert len(labels) == 2 and all(len(label) <= LONGEST for label in labels)
    assert f"<dd>a{LONG}</dd>" in text


def test_names_that_look_the_same_when_shortened_get_numbers() -> None:
    same = "x" * 40
    events = [replace(e, message=e.message and f"{same}{e.message}{same}") for e in trace(SWAPPED)]
    labels = re.findall(
        r'class="label[^"]*">([^<]+)<', diagram(page(outcome_of(events, "fifo.group")))
    )
    assert len(set(labels)) == 2


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    path = write_report(outcome_of(trace(SWAPPED)), tmp_path / "new" / "report.html")
    text = path.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r'\bsrc=|\bhref="(?!#)|@import|https?:|url\(', text)


def test_every_link_leads_to_a_place_in_the_page() -> None:
    runs = tuple(run_of(trace(SWAPPED), "fifo.group", run=f"r{k}") for k in range(30))
    text = page(Outcome(runs))
    links = set(re.findall(r'href="#([^"]+)"', text))
    places = re.findall(r'\bid="([^"]+)"', text)
    assert links <= set(places) and len(places) == len(set(places))


def test_many_runs_are_listed_and_the_worst_shown_in_full() -> None:
    runs = [run_of(trace(CLEAN), run=f"good{k}") for k in range(MOST_DETAILED_RUNS)]
    runs.append(run_of(trace(SWAPPED), "fifo.group", run="broken"))
    read = Reader(page(Outcome(tuple(runs))))
    assert "Run broken" in read.words
    assert read.words.count("Run good") == MOST_DETAILED_RUNS - 1
    assert "good2" in read.words and read.words.index("good2") < read.words.index("good10")


def test_a_list_of_runs_that_is_cut_says_so() -> None:
    one = run_of(trace(CLEAN))
    text = page(Outcome(tuple([one] * (MOST_LISTED_RUNS + 1))))
    assert f"the worst {MOST_LISTED_RUNS:,} of all" in text


def test_of_many_violations_a_few_are_drawn_and_all_are_counted() -> None:
    sends = "; ".join(f"send m{k} g" for k in range(9))
    backwards = "; ".join(f"deliver m{k} g" for k in reversed(range(9)))
    text = page(outcome_of(trace(f"p: {sends}; end\nq: {backwards}; end"), "fifo.group"))
    assert text.split("All properties, on")[0].count("<article") == MOST_CARDS
    assert re.search(r"fifo\.group</code> \d+×", text)


def test_figures_that_the_trace_does_not_tell_are_not_drawn_as_zero() -> None:
    read = Reader(page(Outcome((run_of(trace(CLEAN)),))))
    assert "The trace has no times for sends and their deliveries." in read.words
    assert "Header bytes are not recorded in this trace" in read.words
    assert "Not recorded in this trace." in read.words


def test_latencies_of_zero_are_called_a_coarse_clock() -> None:
    group = GroupFigures("g", None, 1, 2, 0, latency=spread(0, 0))
    text = page(Outcome((run_of(trace(CLEAN), figures=Figures(groups=(group,))),)))
    assert "the clock was too coarse to measure latency" in text


def test_of_many_groups_the_busiest_are_listed_and_the_others_counted() -> None:
    run = run_of(trace(CLEAN), figures=figures(MOST_GROUPS + 7))
    assert "7 more groups with fewer deliveries are not listed" in page(Outcome((run,)))
    run = run_of(trace(CLEAN), figures=figures(MOST_GROUPS))
    assert "not listed" not in page(Outcome((run,)))


def test_the_page_about_the_report_names_its_limits() -> None:
    about = (Path(__file__).parents[2] / "docs" / "REPORT.md").read_text(encoding="utf-8")
    limits = re.findall(r"^\| (.+?) \| ([0-9][^;|]*)", about, re.MULTILINE)
    assert dict(limits) == {
        "runs shown in full, the worst first": f"{MOST_DETAILED_RUNS} ",
        "runs listed": f"{MOST_LISTED_RUNS:,} ",
        "cards per property": f"{MOST_CARDS} ",
        "events in a diagram": f"{MOST_EVENTS} ",
        "characters of a name in a diagram, in a table": f"{LONGEST}, {LONGEST_IN_TABLE}",
        "groups in a table, in a plot": f"{MOST_GROUPS}, {MOST_LINES} ",
    }


def test_a_healthy_trace_is_called_one() -> None:
    assert "Every log is complete" in page(outcome_of(trace(CLEAN)))


def test_what_is_wrong_with_a_trace_is_told() -> None:
    cut = trace("p: send a g; lost; deliver a g\nq: deliver a g; crash")
    run = run_of(cut, figures=figures(health=ill()))
    words = Reader(page(Outcome((run,)))).words
    assert "Every log is complete" not in words
    for finding in (
        "logs that are cut: 1", "logs with lost records: 1", "processes that crashed: 1",
        "p (17)", "members without a log: 1", "deliveries earlier than their send: 9",
        "the second is behind by 6.5 ms, give or take 2.5 ms", "behind by at least 2 ms",
        "no fixed difference fits",
    ):  # fmt: skip
        assert finding in words
