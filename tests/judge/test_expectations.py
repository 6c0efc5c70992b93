"""Which properties are expected, and which exit code follows."""

from __future__ import annotations

import pytest

from ordercast.judge.expectations import (
    DOMAIN_SCOPE,
    GROUP_SCOPE,
    exit_code,
    expected_properties,
    promised,
)
from ordercast.trace.schema import PROPERTIES


def test_orders_and_properties_may_be_mixed_and_each_is_named_once() -> None:
    assert expected_properties(["total", "fifo.group", "views"]) == (
        "total.pairwise", "total.gapless", "fifo.group", "views",
    )  # fmt: skip


def test_the_group_scope_reads_the_group_forms() -> None:
    assert promised("causal", "domain") == ("causal.global",)
    assert promised("causal", "group") == ("causal.group",)
    assert promised("total", "group") == ("total.group", "total.gapless", "fifo.group")


def test_both_scopes_promise_known_properties_for_the_same_orders() -> None:
    assert DOMAIN_SCOPE.keys() == GROUP_SCOPE.keys()
    for names in (*DOMAIN_SCOPE.values(), *GROUP_SCOPE.values()):
        assert set(names) <= set(PROPERTIES)


@pytest.mark.parametrize(("wrong", "near"), [("casual", "causal"), ("total.globl", "total.global")])
def test_an_unknown_name_is_refused_with_the_nearest_and_all_valid_ones(
    wrong: str, near: str
) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{near}'") as refusal:
        expected_properties([wrong])
    assert "causal-total" in str(refusal.value) and "sending_view" in str(refusal.value)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["ok", "ok"], 0),
        ([], 0),
        (["ok", "inconclusive", "violated"], 1),
        (["ok", "inconclusive"], 3),
        (["ok", "n/a"], 3),
    ],
)
def test_the_worst_expected_verdict_decides_the_exit_code(verdicts: list[str], code: int) -> None:
    assert exit_code(verdicts) == code  # type: ignore[arg-type]
