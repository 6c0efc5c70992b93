"""Crashes with and without a flush: what survivors differ in, and what is expected of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ordercast.core.events import View
from ordercast.errors import ConfigError
from ordercast.experiments.arrange import arranged
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.survivors import Differences, differences_of
from ordercast.experiments.trial import Row, Trial, run_trial
from ordercast.simulation.faults import Heal, Partition
from ordercast.simulation.log import Ended, Sent, TraceLog
from ordercast.simulation.payload import pack

CRASH = Coordinates(protocol="javagroups", members=5, group_size=5, messages=60, crashes=1,
                    loss=0.05, options=(("gap_ms", 20), ("retry_ms", 50)))  # fmt: skip


def row_of(at: Coordinates, folder: Path) -> Row:
    trial = Trial(run="r", at=at, costs=None, trace="application", needless=False, keep="none")
    return run_trial(trial, folder)


def story(*records: tuple[object, ...]) -> TraceLog:
    """A log of these (process, row, row, ...)."""
    log = TraceLog()
    log.records += [(p, tick, *rows) for tick, (p, *rows) in enumerate(records)]  # type: ignore[misc]
    return log


def view(number: int, *members: int) -> View:
    return View(1, number, members, members[0], number)


def delivery(sender: int, number: int) -> tuple[int, int, int, int, bytes]:
    return (1, sender, number, 0, pack(number, 0, 16))


def test_without_a_flush_survivors_have_prefixes_and_with_one_all_the_same(tmp_path: Path) -> None:
    seeds = range(10)  # one crash harms few: of three seeds it may be none
    with_flush, without = (
        [row_of(msgspec.structs.replace(CRASH, flush=flush, seed=s), tmp_path) for s in seeds]
        for flush in (True, False)
    )
    assert {row["verdict"] for row in (*with_flush, *without)} == {"kept"}
    assert not any(row["uneven"] + row["vanished"] for row in with_flush)
    assert sum(row["uneven"] for row in without) > 0
    assert sum(row["vanished"] for row in without) > 0
    assert not any(row["no_prefix"] for row in (*with_flush, *without))


def test_only_who_lives_on_and_was_a_member_is_compared() -> None:
    a, b = delivery(0, 1), delivery(0, 2)
    log = story(
        (0, view(1, 0, 1, 2)), (1, view(1, 0, 1, 2)), (2, view(1, 0, 1, 2)),
        (0, Sent(1, 1, 16)), (0, Sent(1, 2, 16)), (1, Sent(1, 7, 16)), (2, Sent(1, 9, 16)),
        (0, a, b), (1, a), (2, Ended("crash")),
        (0, view(2, 0, 1, 3)), (1, view(2, 0, 1, 3)), (3, view(2, 0, 1, 3)),
    )  # fmt: skip
    found = differences_of(log)
    assert (found.uneven, found.lacking, found.vanished, found.no_prefix) == (1, 1, 1, 0)
    assert found.view_change_ms == 0.03  # crash in tick 9, the last view in tick 12


def test_a_message_that_comes_in_the_next_view_is_not_lacking() -> None:
    a = delivery(0, 1)
    log = story((0, view(1, 0, 1)), (1, view(1, 0, 1)), (0, a), (1, view(2, 0, 1)), (1, a))
    assert differences_of(log) == Differences(0, 0, 0, 0, None)


def test_another_order_is_no_prefix() -> None:
    a, b = delivery(0, 1), delivery(1, 1)
    log = story((0, view(1, 0, 1)), (1, view(1, 0, 1)), (0, a, b), (1, b))
    assert differences_of(log) == Differences(1, 1, 0, no_prefix=1, view_change_ms=None)


def test_only_the_protocol_of_the_source_runs_without_a_flush() -> None:
    at = Coordinates(protocol="cbcast", members=3, group_size=3, flush=False)
    with pytest.raises(
        ConfigError, match="flush = false and protocol = 'cbcast': only 'javagroups'"
    ):
        arranged(at)


def test_an_outage_cuts_off_the_last_member_half_way() -> None:
    at = Coordinates(protocol="javagroups", members=3, group_size=3, messages=100, outage_ms=30)
    assert arranged(at).faults == (Partition(((2,),), 51), Heal(81))


def test_who_was_cut_off_gets_everything_with_constant_limits_too(tmp_path: Path) -> None:
    for constant in (False, True):
        at = Coordinates(protocol="javagroups", members=3, group_size=3, outage_ms=30,
                         options=(("constant_resends", constant), ("gap_ms", 20)))  # fmt: skip
        row = row_of(at, tmp_path)
        assert (row["verdict"], row["deliveries"]) == ("kept", 300)
        assert row["retransmissions"] > 10
