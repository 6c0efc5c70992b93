"""Metrics in the text format of Prometheus, as its parser would read them."""

from __future__ import annotations

import re

import ordercast as oc
from ordercast.service.metrics import LIMITS, METRICS, escaped, render

SAMPLE = re.compile(r'([a-z_:]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)')


def parsed(text: str) -> dict[str, float]:
    """Samples by name and labels. Every family has its HELP and TYPE first, and stands once."""
    samples: dict[str, float] = {}
    family, kinds = "", dict[str, str]()
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert family not in kinds
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family
            kinds[name] = kind
            assert (kind == "counter") == name.endswith("_total")
        else:
            found = SAMPLE.fullmatch(line)
            assert found is not None, line
            assert found.group(1) == family in kinds
            key = family + (f"{{{found.group(2)}}}" if found.group(2) else "")
            assert key not in samples
            samples[key] = float(found.group(3))
    return samples


async def test_a_coordinator_shows_its_view_its_groups_and_its_limits() -> None:
    async with (
        oc.Node("s1", bootstrap=True, sequencer=True) as first,
        oc.Node("alice", seeds=[first.address]) as alice,
    ):
        prices = await alice.join("prices", order="total")
        await (await prices.multicast(b"IBM 191.2")).ordered()
        shown = parsed(render(first.stats()))
    assert shown["ordercast_node_view_size"] == 2
    assert shown["ordercast_sequenced_groups"] == 1
    assert shown["ordercast_history_frames"] >= 1
    assert shown["ordercast_connections_open"] == 1
    assert shown['ordercast_connection_bytes_total{direction="in"}'] > 0
    assert shown['ordercast_limit_used{limit="max_groups"}'] == 1
    assert shown['ordercast_limit{limit="max_groups"}'] == 65_536
    assert {f'ordercast_limit{{limit="{name}"}}' for name in LIMITS} <= set(shown)


async def test_what_a_node_does_not_have_is_left_out() -> None:
    shown = parsed(render({}))
    assert set(shown) == {
        next(name for name in shown if name.startswith("ordercast_build_info{")),
        "process_start_time_seconds",
        "process_cpu_seconds_total",
        "process_max_resident_memory_bytes",
    }


def test_no_metric_is_listed_twice() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)


def test_text_of_others_stays_inside_its_label() -> None:
    assert escaped('a"b\\c\nd') == 'a\\"b\\\\c\\nd'
