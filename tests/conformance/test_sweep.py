"""The sweep itself: it finds what is wrong, says how to see it again, and goes on where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from faulty_machines.unsequenced import AcceptsAnyLaterNumber
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import simulate
from sweep import __main__ as command
from sweep import ledger as ledgers
from sweep import results
from sweep.arenas import ARENAS
from sweep.ledger import Ledger, load, save
from sweep.results import Result
from sweep.trial import Failure, complaints, failures

FAILURE = Failure("fifo", "N1", 7, "fifo.group", "violated: b before a")


@pytest.fixture
def faulty_fifo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, "fifo", AcceptsAnyLaterNumber)


def test_a_faulty_machine_is_found_in_an_arena() -> None:
    outcome = simulate(ARENAS["N1"].config(AcceptsAnyLaterNumber, seed=1))
    names = {name for name, _ in complaints(outcome, ARENAS["N0"], ("fifo.group", "wellformed"))}
    assert names == {"fifo.group"}


@pytest.mark.usefixtures("faulty_fifo")
def test_a_failure_names_protocol_arena_and_seed_and_the_command_that_replays_it() -> None:
    failure = failures("fifo", "N1", 1)[0]
    assert "fifo in arena N1, seed 1: fifo.group: violated: " in str(failure)
    assert "python -m sweep --protocol fifo --arena N1 --seed 1" in str(failure)


def test_an_exception_in_a_machine_is_a_failure_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def raises(*_: object) -> None:
        raise AssertionError("our bug")

    monkeypatch.setattr(PROTOCOLS["fifo"], "on_multicast", raises)
    (failure,) = failures("fifo", "N1", 1)
    assert (failure.guarantee, failure.sentence) == ("no exception", "AssertionError: our bug")


def test_the_ledger_goes_on_under_the_same_sources_and_begins_again_under_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out" / "ledger.json"
    first = load(path)
    assert first.done == {}
    done = {"fifo/N1": 40, "vector/N1": 60}
    save(path, Ledger(first.sources, done, [FAILURE]))
    assert load(path) == Ledger(first.sources, done, [FAILURE])
    others = dict(first.sources, fifo="others")
    monkeypatch.setattr(ledgers, "hash_of_sources", others.get)
    assert load(path) == Ledger(others, {"vector/N1": 60}, [])


def test_what_is_recorded_stays_until_the_same_pair_is_recorded_again(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    for sources, done in (("old", {"fifo/N0": 5, "fifo/N1": 9}), ("new", {"fifo/N1": 2})):
        ledger = Ledger({"fifo": sources}, done, [FAILURE] if sources == "new" else [])
        results.write(results.recorded(results.read(file), ledger), file)
    assert results.read(file) == [
        Result("fifo", "N0", 5, "old", older=True),
        Result("fifo", "N1", 2, "new", (FAILURE,)),
    ]


def test_a_sweep_goes_on_behind_what_was_recorded_with_the_same_sources() -> None:
    ledger = Ledger({"fifo": "now", "vector": "now"}, {"vector/N1": 60})
    kept = [
        Result("fifo", "N0", 40, "before"),
        Result("fifo", "N1", 20, "now", (FAILURE,)),
        Result("vector", "N1", 40, "now"),
    ]
    results.resume(ledger, kept)
    assert ledger.done == {"vector/N1": 60, "fifo/N1": 20}
    assert ledger.failures == [FAILURE]


def test_only_seeds_that_are_not_done_are_left() -> None:
    ledger = Ledger({}, {"fifo/N1": 30})
    left = command.tasks(ledger, [("fifo", "N1"), ("vector", "N2")], 50)
    assert left == [("vector", "N2", 0, 20), ("vector", "N2", 20, 20), ("fifo", "N1", 30, 20),
                    ("vector", "N2", 40, 10)]  # fmt: skip


@pytest.mark.usefixtures("faulty_fifo")
@pytest.mark.parametrize(("protocol", "code"), [("fifo", 1), ("reliable", 0)])
def test_the_command_exits_with_1_if_anything_failed(
    protocol: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "LEDGER", tmp_path / "ledger.json")
    monkeypatch.setattr(results, "read", list)
    line = f"sweep --protocol {protocol} --arena N1 --seeds 3 --jobs 1"
    monkeypatch.setattr("sys.argv", line.split())
    assert command.main() == code
    assert "3 runs judged" in capsys.readouterr().out


@pytest.mark.usefixtures("faulty_fifo")
def test_a_replay_prints_the_trace_and_the_witness(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "sweep --protocol fifo --arena N1 --seed 1"
    monkeypatch.setattr("sys.argv", line.split(" "))
    assert command.main() == 1
    printed = capsys.readouterr().out
    assert "deliver" in printed and "ended: quiescent" in printed and "fifo.group" in printed
