"""The judge of a soak, and a soak of seconds."""

from __future__ import annotations

from pathlib import Path

from chaos.soak import Soak, disagreements, not_flat

MIB = 1 << 20


def test_memory_that_grows_is_told() -> None:
    flat = [(40 * MIB, 20, 3)] * 40
    leaking = [((40 + k) * MIB, 20, 3) for k in range(40)]
    assert not_flat(flat) == []
    assert len(not_flat(leaking)) == 1


def test_descriptors_and_threads_that_grow_are_told() -> None:
    samples = [(40 * MIB, 20 + k, 3 + k // 20) for k in range(40)]
    assert len(not_flat(samples)) == 2


def test_what_two_processes_got_between_the_same_views_must_be_equal() -> None:
    a = [["view", "g", 1, ["a"], None, None], ["view", "g", 2, ["a", "b"], 3, 77]]
    b = [["view", "g", 1, ["a"], None, None], ["view", "g", 2, ["a", "b"], 3, 78]]
    assert disagreements({"a": a, "b": a}) == []
    assert len(disagreements({"a": a, "b": b})) == 1


def test_a_process_that_was_out_meanwhile_is_not_compared() -> None:
    a = [["view", "g", 1, ["a"], None, None], ["view", "g", 2, ["a", "b"], 3, 77]]
    b = [a[0], ["out", "excluded"], ["view", "g", 2, ["a", "b"], 1, 78]]
    assert disagreements({"a": a, "b": b}) == []


def test_a_short_soak_has_no_complaint_about_what_its_processes_got(tmp_path: Path) -> None:
    soak = Soak(tmp_path, rate=50.0, seed=1)
    soak.run(minutes=0.15)
    told = {process.path.stem: process.lines() for process in soak._started}
    assert soak.complaints == []
    assert disagreements(told) == []
    assert sum(line[0] == "view" for lines in told.values() for line in lines) >= 20
