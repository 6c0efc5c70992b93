"""The ledger of chaos runs: counts that can be checked, records that belong to their sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos import ledger as ledgers
from chaos.ledger import Found, Ledger, Record, read, summary, write

NEWS = Found(2, "agreement", "b lacks one")
KNOWN = Found(3, "recovery", "it never came up again", "majority lost")


def record(seed: int, recovery: float | None, *findings: Found, kinds: str = "kill") -> Record:
    return Record(seed, "now", (kinds,), 4.0, 10, 30, recovery, findings)


RECORDS = [
    *(record(seed, seed / 10) for seed in (10, 11, 12, 13)),
    record(2, 0.5, NEWS, kinds="pause"),
    record(3, None, KNOWN, kinds="kill several"),
]


def test_a_summary_counts_runs_recoveries_and_findings_over_all_and_by_kind() -> None:
    result = summary(RECORDS, "now", {"ok": 6})
    assert (result.runs, result.recovered, result.sends, result.deliveries) == (6, 5, 60, 180)
    assert (result.unexplained, result.explained) == (1, {"majority lost": 1})
    assert result.kinds["kill"]["recovery_median"] == 1.15
    assert result.slowest[0] == (13, 1.3) and len(result.slowest) == 5
    assert result.kinds["kill several"]["recovered"] == 0
    assert result.kinds["pause"]["unexplained"] == 1
    assert result.findings == [NEWS, KNOWN]


def test_what_spark_found_counts_like_any_other_finding() -> None:
    more = Found(10, "spark total.group", "violated: ...")
    result = summary(RECORDS, "now", {}, [more])
    assert result.unexplained == 2 and more in result.findings
    assert result.kinds["kill"]["unexplained"] == 1


def test_a_summary_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = summary(RECORDS, "now", {"ok": 6})
    write(result, tmp_path / "results.json")
    assert read(tmp_path / "results.json") == result


def test_records_of_other_sources_count_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "hash_of_sources", lambda: "now")
    for one in (*RECORDS, record(10, 9.9)):  # seed 10 was run twice
        Ledger(tmp_path).add(one)
    kept = Ledger(tmp_path).records()
    assert [one.seed for one in kept] == [2, 3, 10, 11, 12, 13] and kept[2].recovery == 9.9
    monkeypatch.setattr(ledgers, "hash_of_sources", lambda: "later")
    assert Ledger(tmp_path).records() == []


def test_a_finding_says_how_to_run_it_again() -> None:
    assert "python -m chaos --seed 2 --runs 1" in str(NEWS)
    assert "majority lost" in str(KNOWN)


def test_the_ledger_of_the_repository_counts_the_findings_that_it_lists() -> None:
    result = read()
    assert result.runs and result.deliveries
    assert result.unexplained == len({one.seed for one in result.findings if not one.rule})
