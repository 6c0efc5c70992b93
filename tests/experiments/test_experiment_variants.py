"""Headers without hearsay: enough where groups make no cycle, too little on a ring."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ordercast.errors import ConfigError
from ordercast.experiments.arrange import arranged
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.trial import Row, Trial, run_trial
from ordercast.experiments.variants import BLOCKING, CONSTANT_RESENDS, WITHOUT_HEARSAY
from ordercast.protocols.registry import PROTOCOLS
from sequencers import S, Served

RING = Coordinates(
    protocol="cbcast", members=8, groups=4, group_size=4, messages=30, every_us=2000.0, reply=1.0,
    depth=8, delay="exponential 300 3000", fifo=True, options=(("resilience", 0),),
)  # fmt: skip
LINE = msgspec.structs.replace(RING, members=10, ring=False)
SEEDS = range(8)


def rows_of(at: Coordinates, folder: Path) -> list[Row]:
    trials = [
        Trial(
            run=f"r{seed}", at=msgspec.structs.replace(at, seed=seed), costs=None,
            trace="application", needless=False, keep="none",
        )
        for seed in SEEDS
    ]  # fmt: skip
    return [run_trial(trial, folder) for trial in trials]


def broken(rows: list[Row]) -> int:
    assert {row["verdict"] for row in rows} == {"kept"}, [row["witness"] for row in rows]
    return sum("causal.global" in row["unpromised"] for row in rows)


@pytest.mark.parametrize("protocol", WITHOUT_HEARSAY)
def test_without_hearsay_causal_order_holds_on_a_line_and_breaks_on_a_ring(
    protocol: str, tmp_path: Path
) -> None:
    given = {"protocol": protocol, "hearsay": False}
    assert broken(rows_of(msgspec.structs.replace(LINE, **given), tmp_path)) == 0
    assert broken(rows_of(msgspec.structs.replace(RING, **given), tmp_path)) > 0


def test_groups_along_a_line_meet_their_neighbours_only() -> None:
    members = [set(group.members) for group in arranged(LINE).groups]
    assert members == [{0, 1, 2, 3}, {2, 3, 4, 5}, {4, 5, 6, 7}, {6, 7, 8, 9}]


def test_groups_that_do_not_fit_on_a_line_are_refused() -> None:
    with pytest.raises(ConfigError, match="meets the next but one; write more members"):
        arranged(msgspec.structs.replace(LINE, members=8))


def test_only_protocols_that_pass_on_hearsay_can_do_without() -> None:
    with pytest.raises(ConfigError, match="hearsay = false and protocol = 'fifo': only 'cbcast'"):
        arranged(msgspec.structs.replace(RING, protocol="fifo", hearsay=False))


@pytest.mark.parametrize("protocol", BLOCKING)
def test_a_blocking_sender_has_one_message_under_way(protocol: str) -> None:
    b = Served(BLOCKING[protocol], {1: ((1, 2), S)})
    b.tell(1, 1, "a", "b")
    assert b.find(1, S, text="a") and not b.find(text="b")
    b.settle()
    assert b.texts(2) == ["a", "b"]


def test_only_senders_to_several_sequencers_block() -> None:
    given = Coordinates(protocol="cbcast", options=(("blocking", True),))
    with pytest.raises(ConfigError, match="blocking = true and protocol = 'cbcast'"):
        arranged(given)


def test_constant_limits_are_a_variant_of_the_protocol_of_the_source() -> None:
    asked = (("constant_resends", True), ("gap_ms", 20))
    plain = Coordinates(protocol="javagroups", group_size=3)
    constant = msgspec.structs.replace(plain, options=asked)
    assert arranged(plain).protocol is PROTOCOLS["javagroups"]
    assert arranged(constant).protocol is CONSTANT_RESENDS["javagroups"]
    with pytest.raises(ConfigError, match="constant_resends = true and protocol = 'cbcast'"):
        arranged(Coordinates(protocol="cbcast", options=asked))


def test_a_run_is_of_one_variant() -> None:
    given = Coordinates(protocol="javagroups", flush=False, options=(("constant_resends", True),))
    with pytest.raises(ConfigError, match="write only one of them"):
        arranged(given)
