"""The incremental judge: it accuses nobody falsely, and finds what the slow judge finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random

import pytest

from notation import trace
from ordercast.pipeline.streaming.live import LiveJudge, Notice
from ordercast.pipeline.streaming.live.memory import NEVER
from ordercast.pipeline.streaming.live.state import RunState
from ordercast.pipeline.streaming.panel import REST, Panel
from ordercast.trace import oracle
from ordercast.trace.oracle.logs import Run
from ordercast.trace.oracle.membership import recorded_views, sending_view
from ordercast.trace.schema import PROPERTIES, Event
from random_traces import random_trace

NOT_JUDGED = ("validity", "agreement", "agreement.uniform")  # missing deliveries: only `overdue`
STABLE = 5_000
JUDGED = [name for name in PROPERTIES if name not in NOT_JUDGED]


def batches(rng: Random, events: Iterable[Event]) -> list[list[Event]]:
    """The rows as a reader would meet them: each log in order, all at different speeds."""
    logs: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        logs[event.process or ""].append(event)
    for log in logs.values():
        log.sort(key=lambda event: event.index or 0)
    speeds = {name: rng.random() ** 2 + 0.05 for name in sorted(logs)}
    cut = []
    while any(logs.values()):
        batch = []
        for name, speed in speeds.items():
            rows = rng.randint(1, 6) if rng.random() < speed else 0
            batch += logs[name][:rows]
            del logs[name][:rows]
        rng.shuffle(batch)
        cut.append(batch)
    return cut


def judge_all(parts: Iterable[list[Event]]) -> tuple[LiveJudge, list[Notice]]:
    """Feed all parts, then let time pass; between two parts the judge is only its bytes."""
    panel, notices = Panel(expected=PROPERTIES, stable_ms=STABLE), []
    for now_ms, part in [*((0, part) for part in parts), (STABLE, []), (2 * STABLE, [])]:
        notices += panel.feed(part, now_ms)
        panel = Panel(panel.encode(), expected=PROPERTIES, stable_ms=STABLE)
    return LiveJudge(panel.state.judges[REST]), notices


def is_in_doubt(judge: LiveJudge, events: list[Event]) -> bool:
    """Is this among the cases for which docs/WATCH.md promises no completeness?"""
    run = Run(events)
    from_outside = any(
        recorded_views(run, run.group_of(m)) and sending_view(run, m) is None for m in run.sends
    )
    unsent = set(run.delivered) - set(run.sends)
    return bool(doubts(judge)) or from_outside or bool(unsent)


def doubts(judge: LiveJudge) -> set[str]:
    """Those that concern what is judged here."""
    return judge.state.doubts.keys() - {NEVER}


@pytest.mark.parametrize("block", range(5))
def test_what_is_told_is_true_and_what_is_true_is_told(block: int) -> None:
    complete = 0
    for seed in range(block * 100, block * 100 + 100):
        rng = Random(seed)
        events = random_trace(rng)
        if oracle.unspecified(events):
            continue
        verdicts = oracle.verdicts(events)
        judge, _ = judge_all(batches(rng, events))
        in_doubt = is_in_doubt(judge, events)
        complete += not in_doubt
        for name in JUDGED:
            if judge.violated(name):
                assert verdicts[name] == "violated", f"seed {seed}: {name} is accused falsely"
            elif not in_doubt:
                assert verdicts[name] != "violated", f"seed {seed}: {name} is not found"
    assert complete > 50


def told(judge: LiveJudge) -> set[tuple[str, str, str]]:
    """What stands, without circles of three: they are told only if no pair in them came first."""
    return {
        (finding.told, finding.property, finding.about)
        for finding in judge.state.findings.values()
        if not finding.about.endswith("circle") and finding.told != "withdrawn"
    }


def test_other_batches_make_no_other_findings() -> None:
    for seed in range(300):
        rng = Random(seed)
        events = random_trace(rng)
        if oracle.unspecified(events):
            continue
        one, _ = judge_all(batches(rng, events))
        other, _ = judge_all(batches(rng, events))
        if doubts(one) or doubts(other):
            continue
        assert told(one) == told(other), f"seed {seed}"
        for name in JUDGED:
            assert one.violated(name) == other.violated(name), f"seed {seed}: {name}"


def test_nothing_is_told_twice_in_a_row() -> None:
    for seed in range(200):
        rng = Random(seed)
        last: dict[str, str] = {}
        for notice in judge_all(batches(rng, random_trace(rng)))[1]:
            assert last.get(notice.about) != notice.kind, f"seed {seed}: {notice}"
            last[notice.about] = notice.kind


def feed(text: str, *later: str) -> list[list[tuple[str, str, str]]]:
    """Judge the parts one after the other; what each made the judge say."""
    judge = LiveJudge(RunState())
    rows: list[Event] = []
    said = []
    for part in (text, *later):
        new = [row for row in trace(part) if row not in rows]
        rows += new
        said.append([(n.kind, n.property, n.sentence) for n in judge.feed(new, now_ms=0)])
    return said


def test_a_gap_is_told_at_once_with_both_messages() -> None:
    (said,) = feed("""
        group g: p,q
        p: send a g; send b g
        q: deliver b g
    """)
    assert ("violated", "fifo.group", "q delivered b without a, which comes before it.") in said


def test_a_delivery_waits_for_its_send() -> None:
    first, second = feed(
        """
        group g: p,q
        q: deliver b g; deliver a g
        """,
        """
        p: send a g; send b g
        """,
    )
    assert first == []
    assert ("violated", "fifo.group") in [(kind, name) for kind, name, _ in second]


@pytest.mark.parametrize("reader", ["p", "z"])
def test_a_delivery_whose_send_was_read_waits_for_it_also_when_that_waits_itself(
    reader: str,
) -> None:
    """q waits for a send that never comes, and then is judged without. Its own sends stand behind:
    whoever waits for those need not be judged without, whichever log is looked at first."""
    text = f"""
        group g: {reader},q
        {reader}: deliver b g; deliver a g
        q: deliver x g; send a g; send b g
    """
    panel = Panel(expected=PROPERTIES, stable_ms=STABLE)
    told_at_first, later = panel.feed(trace(text), 0), panel.feed([], STABLE)
    assert not told_at_first
    assert ("violated", "fifo.group") in [(notice.kind, notice.property) for notice in later]
    judge = LiveJudge(panel.state.judges[REST])
    assert judge.state.doubts == {"deliveries judged without their send": 1}


def test_a_crash_leaves_the_uniform_form_only() -> None:
    judge = LiveJudge(RunState())
    judge.feed(trace("group g: p,q\np: send a g; send b g\nq: deliver b g; deliver a g"), 0)
    assert judge.violated("fifo.group")
    assert judge.violated("fifo.group.uniform")
    said = judge.feed([Event("q", 3, "crash")], 0)
    assert {notice.kind for notice in said} == {"excused"}
    assert not judge.violated("fifo.group")
    assert judge.violated("fifo.group.uniform")


def test_lost_records_take_a_gap_back_and_leave_an_inversion() -> None:
    gap = LiveJudge(RunState())
    gap.feed(trace("group g: p,q\np: send a g; send b g\nq: deliver b g"), 0)
    gap.feed([Event("q", 9, "lost")], 0)
    assert not gap.violated("fifo.group.uniform")
    inversion = LiveJudge(RunState())
    inversion.feed(trace("group g: p,q\np: send a g; send b g\nq: deliver b g; deliver a g"), 0)
    inversion.feed([Event("q", 9, "lost")], 0)
    assert inversion.violated("fifo.group")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "fifo.global",
            """
            p: view 1 g p,q; send a g; send b h; send c h
            q: deliver b h; view 1 g p,q; deliver c h
            """,
        ),
        (
            "total.gapless",
            """
            p: view 1 g p,q; send a g; send b g; send c g; deliver a g; deliver b g; deliver c g
            q: deliver b g; view 1 g p,q; deliver c g
            """,
        ),
    ],
)
def test_what_was_not_owed_at_first_is_owed_after_a_view(name: str, text: str) -> None:
    events = trace(text)
    assert oracle.verdicts(events)[name] == "violated"
    judge, _ = judge_all([events])
    missing = [f.witness for f in judge.state.findings.values() if f.property == name]
    assert {"process": "q", "missing": "a", "second": "c", "what": "gap"} in missing


def test_a_gap_is_taken_back_if_the_process_joins_only_later() -> None:
    judge = LiveJudge(RunState())
    judge.feed(trace("group g: p,q\np: send a g; send b g\nq: deliver b g"), 0)
    assert judge.violated("fifo.group")
    said = judge.feed([Event("q", 9, "join", group="g")], 0)
    assert ("withdrawn", "fifo.group") in [(notice.kind, notice.property) for notice in said]
    assert not judge.violated("fifo.group")
    assert judge.violated("membership")


def test_a_gap_in_a_total_order_is_told_when_the_message_is_overdue() -> None:
    judge = LiveJudge(RunState(), stable_ms=1_000)
    rows = trace("group g: p,q\np: send a g; send b g; deliver a g; deliver b g\nq: deliver b g")
    assert "total.gapless" not in {notice.property for notice in judge.feed(rows, 0)}
    assert "total.gapless" in {notice.property for notice in judge.feed([], 1_000)}


def test_a_circle_of_three_is_found_though_no_two_disagree() -> None:
    (said,) = feed("""
        p: send a g; deliver a g; deliver b g
        q: send b g; deliver b g; deliver c g
        r: send c g; deliver c g; deliver a g
    """)
    circles = [sentence for kind, name, sentence in said if name == "total.group"]
    assert len(circles) == 1
    assert all(name in circles[0] for name in ("p delivered", "q delivered", "r delivered"))
    assert not [name for _, name, _ in said if name == "total.pairwise"]


def test_logs_that_wait_for_each_other_contradict_themselves() -> None:
    (said,) = feed("""
        p: deliver b g; send a g
        q: deliver a g; send b g
    """)
    assert {name for _, name, _ in said} >= {"wellformed", "no_creation"}


def test_a_row_that_comes_after_later_ones_is_said_and_accuses_nobody() -> None:
    judge = LiveJudge(RunState())
    judge.feed(trace("group g: p,q\np: send a g; send b g"), 0)
    judge.feed([Event("q", 2, "deliver", "b", "g")], 0)
    assert judge.violated("fifo.group")
    said = judge.feed([Event("q", 1, "deliver", "a", "g")], 0)
    assert {notice.kind for notice in said} == {"limit", "withdrawn"}
    assert not judge.violated("fifo.group.uniform")


def test_a_crash_that_another_saw_counts_until_the_log_turns_out_complete() -> None:
    from ordercast.trace.expand import CRASH_NOTE_INDEX

    judge = LiveJudge(RunState())
    judge.feed(trace("group g: p,q\np: send a g; send b g\nq: deliver b g; deliver a g"), 0)
    judge.feed([Event("q", CRASH_NOTE_INDEX, "crash")], 0)
    assert not judge.violated("fifo.group")
    judge.feed([Event("q", 3, "end")], 0)
    assert judge.violated("fifo.group")
