"""The incremental judge over time: what is overdue, what is forgotten, what is said at a limit."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec
from msgspec.structs import replace

from notation import trace
from ordercast.pipeline.streaming.live import Limits, LiveJudge, Notice
from ordercast.pipeline.streaming.live.idset import MOST_KEPT, IdSet
from ordercast.pipeline.streaming.live.state import RunState
from ordercast.trace.schema import Event

STABLE = 1_000
LONG = 10**9


def kinds(notices: list[Notice]) -> list[tuple[str, str]]:
    return [(notice.kind, notice.about) for notice in notices]


def judge_of(text: str, **options: object) -> LiveJudge:
    judge = LiveJudge(RunState(), stable_ms=STABLE, **options)  # type: ignore[arg-type]
    judge.feed(trace(text), now_ms=0)
    return judge


def test_a_missing_delivery_is_overdue_after_the_stability_time_and_never_violated() -> None:
    judge = judge_of("group g: p,q\np: send a g; deliver a g")
    assert judge.feed([], now_ms=STABLE - 1) == []
    assert kinds(judge.feed([], now_ms=STABLE)) == [("overdue", "q|a")]
    assert judge.feed([], now_ms=9 * STABLE) == []
    assert not judge.violated("agreement")


def test_an_overdue_delivery_that_comes_is_said_to_have_come() -> None:
    judge = judge_of("group g: p,q\np: send a g; deliver a g")
    judge.feed([], now_ms=STABLE)
    said = judge.feed([Event("q", 1, "deliver", "a", "g")], now_ms=2 * STABLE)
    assert kinds(said) == [("arrived", "q|a")]
    assert judge.state.messages == {}


def test_who_crashes_or_leaves_is_released_from_what_is_overdue() -> None:
    for last in ("crash", "leave"):
        judge = judge_of("group g: p,q\np: send a g; deliver a g")
        judge.feed([], now_ms=STABLE)
        said = judge.feed([Event("q", 1, last, group="g")], now_ms=2 * STABLE)
        assert kinds(said) == [("released", "q|a")]


def test_a_log_that_ends_without_what_it_owes_leaves_the_question_open() -> None:
    judge = judge_of("group g: p,q\np: send a g; deliver a g\nq: end")
    said = judge.feed([], now_ms=STABLE)
    assert [notice.sentence for notice in said] == ["The log of q ended without a."]
    assert judge.state.doubts == {"deliveries that are owed by logs which ended without them": 1}
    assert judge.feed([], now_ms=2 * STABLE) == []


def test_only_so_many_overdue_deliveries_of_a_process_are_told() -> None:
    sends = "; ".join(f"send m{n} g; deliver m{n} g" for n in range(30))
    judge = judge_of(f"group g: p,q\np: {sends}", limits=Limits(overdue=5))
    assert len(judge.feed([], now_ms=STABLE)) == 5
    assert sum(m.debtors for m in judge.state.messages.values()) == 30


def test_a_delivery_without_a_send_holds_its_log_no_longer_than_the_stability_time() -> None:
    judge = judge_of("group g: p,q\nq: deliver x g; deliver x g")
    assert judge.feed([], now_ms=STABLE - 1) == []
    assert kinds(judge.feed([], now_ms=STABLE)) == [("violated", "no_duplication|q|x")]
    assert "deliveries judged without their send" in judge.state.doubts


def rounds(count: int, processes: int = 3) -> Iterator[list[Event]]:
    """A faultless run: batches of sends that everybody delivers."""
    names = [f"p{n}" for n in range(processes)]
    index = dict.fromkeys(names, 0)
    yield [Event(None, None, "group", group="g", members=tuple(names))]
    for n in range(count):
        rows = []
        for kind, name in [("send", names[n % processes]), *(("deliver", name) for name in names)]:
            index[name] += 1
            message = f"{names[n % processes]}/g/{n // processes}"
            rows.append(Event(name, index[name], kind, message, "g"))
        yield rows


def test_what_is_delivered_everywhere_is_forgotten_and_still_known_as_a_duplicate() -> None:
    judge = LiveJudge(RunState(), stable_ms=STABLE)
    sizes = []
    for n, rows in enumerate(rounds(3_000)):
        assert judge.feed(rows, now_ms=100 * n) == []
        sizes.append(len(msgspec.msgpack.encode(judge.state)))
    assert len(judge.state.messages) <= STABLE // 100 + 1
    assert max(sizes[1_000:]) < 1.2 * max(sizes[:1_000])
    again = judge.feed([Event("p1", 10**6, "deliver", "p0/g/0", "g")], now_ms=10**6)
    assert [notice.property for notice in again] == ["no_duplication"]


def test_a_dead_member_fills_the_memory_only_up_to_the_limit_and_that_is_said() -> None:
    judge = LiveJudge(RunState(), stable_ms=STABLE, limits=Limits(messages=50))
    said: list[Notice] = []
    for n, rows in enumerate(rounds(300)):
        said += judge.feed([row for row in rows if row.process != "p2"], now_ms=100 * n)
    assert len(judge.state.messages) <= 50
    assert [notice.about for notice in said if notice.kind == "limit"] == ["messages"]
    assert not [notice for notice in said if notice.kind == "violated"]


def test_so_many_findings_are_told_and_then_that_there_are_more() -> None:
    judge = judge_of("group g: p,q", limits=Limits(findings=3))
    rows = [Event("p", n, "send", f"m{n}", "g") for n in range(1, 11)]
    rows += [Event("q", n, "deliver", f"m{11 - n}", "g") for n in range(1, 11)]
    said = [notice for notice in judge.feed(rows, 0) if notice.property == "fifo.group"]
    assert [notice.kind for notice in said] == ["violated"] * 3 + ["limit"]
    assert len([f for f in judge.state.findings.values() if f.property == "fifo.group"]) == 3


def spoiled(rng: Random, rows: list[list[Event]]) -> dict[str, list[tuple[int, Event]]]:
    """Logs with the time of each row, with deliveries swapped, dropped and repeated."""
    logs: dict[str, list[tuple[int, Event]]] = {}
    for now, part in enumerate(rows):
        for row in part:
            logs.setdefault(row.process or "", []).append((now, row))
    for _ in range(8):
        log = logs[rng.choice(["p0", "p1", "p2"])]
        here = rng.randrange(len(log) - 8)
        there = here + rng.randint(1, 7)
        one, other = log[here][1], log[there][1]
        if one.kind == other.kind == "deliver":
            swapped = [replace(one, message=other.message), replace(other, message=one.message)]
            dropped = [replace(one, kind="ack"), other]
            repeated = [one, replace(other, message=one.message)]
            spoilt = rng.choice([swapped, dropped, repeated])
            log[here], log[there] = (log[here][0], spoilt[0]), (log[there][0], spoilt[1])
    return logs


def test_forgetting_changes_no_finding_while_logs_lag_less_than_the_stability_time() -> None:
    found = 0
    for seed in range(20):
        rng = Random(seed)
        logs = spoiled(rng, list(rounds(150)))
        lag = {name: rng.randint(0, 4) for name in logs}
        never = LiveJudge(RunState(), stable_ms=LONG)
        soon = LiveJudge(RunState(), stable_ms=STABLE)
        for now in range(170):
            rows = [row for p, log in logs.items() for at, row in log if at + lag[p] == now]
            never.feed(rows, now * 100)
            soon.feed(rows, now * 100)
        assert len(soon.state.messages) < len(never.state.messages) / 2
        for judge in (never, soon):
            judge.feed([], LONG + 170 * 100)
        assert set(never.state.findings) == set(soon.state.findings), f"seed {seed}"
        found += len(never.state.findings)
    assert found > 20


def test_numbered_ids_take_the_space_of_their_ranges() -> None:
    ids = IdSet()
    for n in Random(1).sample(range(10_000), 10_000):
        ids.add(f"alice/g/{n}")
    assert len(ids) == 1
    assert "alice/g/0" in ids
    assert "alice/g/10000" not in ids
    assert "alice/g/007" not in ids


def test_ids_without_a_number_are_kept_up_to_a_limit() -> None:
    ids = IdSet()
    for n in range(MOST_KEPT + 2):
        ids.add(f"{n}-x")
    assert (len(ids), ids.forgotten) == (MOST_KEPT, 2)
    assert "0-x" not in ids
    assert "2-x" in ids


def test_numbers_that_do_not_follow_each_other_are_kept_up_to_the_same_limit() -> None:
    ids = IdSet()
    for n in range(MOST_KEPT + 2):
        ids.add(f"x{2 * n}")
    assert (len(ids), ids.forgotten) == (MOST_KEPT, 2)
    assert "x0" not in ids
    assert "x4" in ids
