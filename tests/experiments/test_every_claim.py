"""No verdict on a claim is always the same: tables with other figures come to others.

Each line takes the table of an experiment as it was measured and changes figures in it, as if the
protocol were otherwise. A rule that always says "yes", or compares the wrong way round, fails here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.results import RESULTS
from experiments.rows import Row
from ordercast.experiments import read_runs

Rows = list[Row]
Made = Callable[[Rows], Rows]


def _fits(row: Row, where: dict[str, object]) -> bool:
    return all(row[name] == value for name, value in where.items())


def times(column: str, factor: float, **where: object) -> Made:
    """So many times the figures, of rows that look like this."""
    return lambda rows: [
        row | {column: row[column] * factor}
        if row[column] is not None and _fits(row, where)
        else row
        for row in rows
    ]


def raised(column: str, by: float, **where: object) -> Made:
    """The same difference everywhere: what was many times another is as large."""
    return lambda rows: [
        row | {column: row[column] + by} if row[column] is not None and _fits(row, where) else row
        for row in rows
    ]


def bent(column: str, along: str, power: int, **where: object) -> Made:
    """The figures rise, or fall, with the place of a coordinate among its values."""

    def made(rows: Rows) -> Rows:
        values = sorted({row[along] for row in rows if row[along] is not None})
        return [
            row | {column: row[column] * float(values.index(row[along]) + 1) ** power}
            if row[column] is not None and row[along] is not None and _fits(row, where)
            else row
            for row in rows
        ]

    return made


def swapped(column: str, one: str, other: str) -> Made:
    """The figures of one are those of the other."""

    def made(rows: Rows) -> Rows:
        values = {str(row[column]): row[column] for row in rows}
        instead = {one: values[other], other: values[one]}
        return [row | {column: instead.get(str(row[column]), row[column])} for row in rows]

    return made


OTHERWISE: list[tuple[str, int, Made, str]] = [
    ("load", 0, times("delay_p50_ms", 0.1, every_us=1000.0), "in part"),
    ("load", 0, times("busiest", 10, every_us=1000.0), "no"),
    ("several_sequencers", 0, times("outside", 0), "no"),
    ("several_sequencers", 1, times("largest_part", 10), "no"),
    ("apart", 0, times("largest_part", 0), "in part"),
    ("contexts", 0, times("context_mean", 10), "in part"),
    ("contexts", 1, times("context_mean", 0.1, protocol="sequencing_causal"), "in part"),
    ("contexts", 1, times("context_mean", 0.1), "no"),
    ("context_bytes", 0, bent("header_mean_bytes", "members", 3, protocol="sequencing"), "in part"),
    ("context_bytes", 0, bent("header_mean_bytes", "members", 3), "no"),
    ("context_bytes", 1, times("header_mean_bytes", 0.1, protocol="cbcast"), "no"),
    ("context_bytes", 1, times("header_mean_bytes", 10, protocol="cbcast"), "yes"),
    ("few_senders", 0, swapped("protocol", "block_total", "cbcast"), "no"),
    ("few_senders", 0, bent("delay_p99_ms", "senders", -3), "yes"),
    ("few_senders", 1, bent("delay_p99_ms", "senders", 3), "no"),
    ("few_senders", 2, bent("delay_p50_ms", "payload_bytes", -3), "no"),
    ("bodies", 0, swapped("broadcast", "False", "True"), "in part"),
    ("bodies", 0, bent("sent", "payload_bytes", 3), "no"),
    ("bodies", 1, times("delay_p50_ms", 0), "no"),
    ("latency", 0, times("delay_p50_ms", 0.1, protocol="agreed"), "no"),
    ("latency", 1, times("throughput_per_s", 0, protocol="sequencing"), "no"),
    ("loss", 0, times("packets_per_message", 0.1, protocol="basic"), "in part"),
    ("migration", 0, times("moves", 10), "no"),
    ("migration", 0, times("repeated_most", 0.1), "yes"),
    ("migration", 1, times("change_bytes", 10, size=1000), "no"),
    ("packets", 0, swapped("protocol", "basic", "reliable"), "no"),
    ("packets", 1, swapped("protocol", "basic", "reliable"), "no"),
    ("two_layers_delay", 0, times("delay_all_ms", 10, protocol="two_layered"), "no"),
    ("two_layers_delay", 0, times("delay_all_ms", 0), "yes"),
    ("two_layers_delay", 1, times("delay_all_ms", 10, protocol="two_layered"), "no"),
    ("two_layers_delay", 1, times("delay_all_ms", 0.1), "yes"),
    ("two_layers_model", 0, times("delay_all_ms", 0.1), "no"),
    ("two_layers_model", 1, times("delay_all_ms", 0.1, protocol="two_layered"), "yes"),
    ("two_layers_model", 2, times("delay_all_ms", 10, protocol="two_layered"), "no"),
    ("two_layers_split", 0, bent("subgroups", "members", 3), "in part"),
    ("two_layers_split", 0, bent("subgroups", "payload_bytes", 3), "no"),
    ("two_layers_split", 1, times("busiest_us_per_message", 10, members=900), "no"),
    ("two_layers_split", 2, times("median_us_per_message", 10, members=900), "no"),
    ("two_layers_split", 3, raised("subgroups", 1000.0), "no"),
    ("two_layers_split", 4, bent("subgroups", "members", 3), "in part"),
    ("two_layers_overhead", 0, times("header_mean_bytes", 0.1), "no"),
    ("two_layers_overhead", 1, swapped("protocol", "two_layered", "vector"), "no"),
    ("two_layers_overhead", 2, times("header_bytes_per_message", 10, protocol="two_layered"), "no"),
    ("two_layers_overhead", 2, times("cpu_us_per_message", 0.1, protocol="two_layered"), "yes"),
    ("large_groups", 0, times("throughput_per_s", 0.1, members=400), "in part"),
    ("false_order", 0, times("gateways_same", 0), "no"),
    ("false_order", 1, raised("gateways_other", 1000.0), "no"),
    ("false_order", 2, times("rule_1_pairs", 10), "no"),
    ("resending", 1, times("retransmissions", 0), "yes"),
    ("lost_suffix", 0, times("delay_mean_ms", 0, loss=0.2), "in part"),
    ("lost_suffix", 0, times("delay_mean_ms", 0), "no"),
    ("prefix", 0, times("uneven", 0), "in part"),
    ("prefix", 1, times("view_change_ms", 10, payload_bytes=129664), "yes"),
    ("causal_blocks", 0, times("delay_mean_ms", 10, protocol="fast"), "no"),
    ("causal_blocks", 0, times("header_mean_bytes", 0), "yes"),
    ("causal_blocks", 1, swapped("protocol", "relative", "slow"), "no"),
    ("header_saving", 0, times("header_mean_bytes", 10, protocol="cbcast"), "yes"),
    ("header_saving", 1, times("overlap", 0.6), "yes"),
    ("needless_waiting", 0, swapped("protocol", "cbcast", "fast_p"), "no"),
    ("needless_waiting", 1, times("needless_ms", 0), "in part"),
    ("single_members", 0, swapped("protocol", "relative", "slow"), "no"),
    ("single_members", 1, times("single_hold_back_mean_ms", 0), "no"),
    ("own_groups", 1, swapped("hearsay", "False", "True"), "no"),
]  # fmt: skip
"""Experiment, number of the claim, what is changed, and the verdict that follows"""

NOTHING_WAS_CLAIMED = {
    ("contexts", 2),
    ("senders", 1),
    ("packets", 2),
    ("negative", 1),
    ("orders", 2),
    ("silence", 1),
    ("price_list", 0),
    ("price_list", 1),
}
NOT_YET = {
    ("senders", 0),
    ("causal_by_waiting", 0),
    ("causal_by_waiting", 1),
    ("negative", 0),
    ("orders", 0),
    ("orders", 1),
    ("resending", 0),
    ("silence", 0),
    ("own_groups", 0),
}
"""Claims whose other verdicts no line reaches so far. The set can only get smaller."""


@cache
def measured(name: str) -> Rows:
    """The table in the repository."""
    return read_runs(RESULTS / f"{name}.parquet")[0]


@cache
def verdicts(name: str) -> list[str]:
    """As measured."""
    return [claim.holds for claim in EXPERIMENTS[name].claims(measured(name))]


@pytest.mark.parametrize(
    ("name", "number", "made", "verdict"),
    OTHERWISE,
    ids=[f"{name}-{number}-{verdict}" for name, number, _, verdict in OTHERWISE],
)
def test_other_figures_come_to_another_verdict(
    name: str, number: int, made: Made, verdict: str
) -> None:
    claims = EXPERIMENTS[name].claims(made(measured(name)))
    assert claims[number].holds == verdict != verdicts(name)[number]


def test_every_claim_has_figures_that_come_to_another_verdict() -> None:
    claims = {(name, number) for name in EXPERIMENTS for number in range(len(verdicts(name)))}
    tried = {(name, number) for name, number, _, _ in OTHERWISE}
    assert claims - tried == NOTHING_WAS_CLAIMED | NOT_YET
    assert {verdicts(name)[number] for name, number in NOTHING_WAS_CLAIMED} == {
        "nothing was claimed"
    }
