"""Plain state: copies are independent, fingerprints tell states apart and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from typing import Any

import msgspec
import pytest

from ordercast.core.events import Kept
from ordercast.core.state import PlainState


class Box(PlainState):
    """Whatever a test puts in."""

    def __init__(self, **content: Any) -> None:
        self.__dict__.update(content)


def full() -> Box:
    return Box(
        number=1,
        text="x",
        body=b"y",
        nothing=None,
        pair=(1, [2]),
        row=[1, {2}],
        line=deque([1, 2], maxlen=3),
        names={"a", "b", "c"},
        table={"k": {"deep": [1]}, ("t", 1): 2},
        header=Kept(1, 2, (3,), b"z"),
        inner=Box(n=1),
    )


def test_changing_a_copy_at_any_depth_leaves_the_original_alone() -> None:
    original = full()
    before = original.fingerprint()
    twin = original.copy()
    assert twin.fingerprint() == before
    twin.row[1].add(9)
    twin.pair[1].append(9)
    twin.line.append(9)
    twin.names.add("d")
    twin.table["k"]["deep"].append(9)
    twin.inner.n = 9
    assert original.fingerprint() == before
    assert twin.fingerprint() != before
    assert twin.line.maxlen == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"number": 2},
        {"text": "X"},
        {"body": b"Y"},
        {"nothing": 0},
        {"pair": (1, [3])},
        {"names": {"a", "b"}},
        {"table": {"k": {"deep": [2]}, ("t", 1): 2}},
        {"header": Kept(1, 2, (4,), b"z")},
        {"inner": Box(n=2)},
    ],
)
def test_different_states_have_different_fingerprints(changed: dict[str, Any]) -> None:
    other = full()
    other.__dict__.update(changed)
    assert other.fingerprint() != full().fingerprint()


def test_the_order_of_insertion_into_sets_and_dicts_does_not_show() -> None:
    one = Box(table={1: "a", 2: "b"}, names={"x", "y"})
    two = Box(table={2: "b", 1: "a"}, names={"y", "x"})
    assert one.fingerprint() == two.fingerprint()


def test_the_order_of_a_queue_shows() -> None:
    assert Box(q=deque([1, 2])).fingerprint() != Box(q=deque([2, 1])).fingerprint()


def test_a_fingerprint_is_the_same_under_every_hash_seed() -> None:
    program = (
        "from ordercast.protocols.registry import PROTOCOLS\n"
        "from ordercast.core.events import Multicast, View\n"
        "for protocol in PROTOCOLS.values():\n"
        "    machine = protocol(7)\n"
        "    machine.step([View(1, 1, (7, 8, 9), 7), Multicast(1, b'm')])\n"
        "    machine.others.update({g: () for g in (5, 3, 4)})\n"
        "    machine.member_of.update({11, 12, 13})\n"
        "    print(machine.fingerprint())\n"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(prints) == 1
    found = prints.pop().split()
    assert len(found) == len(set(found)) >= 6  # each protocol has its own


class Changing(msgspec.Struct):
    """Copies would share it."""

    n: int = 0


FOREIGN = [object(), lambda: None, iter([1]), bytearray(b"x"), Changing()]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_what_is_not_plain_data_is_refused(foreign: object) -> None:
    with pytest.raises(TypeError, match="not plain data"):
        Box(x=foreign).copy()
    with pytest.raises(TypeError, match="not plain data"):
        Box(x=[foreign]).fingerprint()
