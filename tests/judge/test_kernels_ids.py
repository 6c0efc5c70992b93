"""Message ids become dense integers, and no two of them the same one."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ordercast.judge.kernels import compiled, ids
from ordercast.judge.kernels.ids import NONE, Ids


@pytest.fixture(params=["few", "many"])
def any_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to keep ids, whatever their number."""
    if request.param == "many":
        monkeypatch.setattr(compiled, "COMPILE_FROM", 0)
    return str(request.param)


@pytest.mark.usefixtures("any_size")
def test_ids_are_numbered_as_they_are_first_met() -> None:
    known = Ids()
    assert known.number(pa.array(["b", "a", None, "b", ""])).tolist() == [0, 1, NONE, 0, 2]
    assert known.number(pa.chunked_array([["a"], ["c", "b"]])).tolist() == [1, 3, 0]
    assert [known.name(number) for number in range(len(known))] == ["b", "a", "", "c"]


@pytest.mark.usefixtures("any_size")
def test_a_slice_of_a_column_is_numbered_as_its_values() -> None:
    column = pa.array(["a", "ä", "a/b/12", None, "a/b/1"]).slice(1, 3)
    known = Ids()
    assert known.number(column).tolist() == [0, 1, NONE]
    assert known.name(1) == "a/b/12"


def test_what_was_met_while_few_keeps_its_number() -> None:
    known = Ids()
    words = [f"m{k}" for k in range(compiled.COMPILE_FROM + 10)]
    first = known.number(pa.array(words[:100]))
    rest = known.number(pa.array(words))
    assert first.tolist() == list(range(100))
    assert rest.tolist() == list(range(len(words)))


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_ids_gives_the_numbers_that_a_dictionary_would(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "COMPILE_FROM", 0)
    rng, known, wanted = Random(seed), Ids(), dict[str, int]()
    for _ in range(20):
        start = rng.randrange(200_000)
        words = [f"p{k % 3}/g/{k}" for k in range(start, start + 3000)]
        for _ in range(300):
            words.insert(rng.randrange(len(words)), f"p9/g/{rng.randrange(10**6)}")
        expected = [wanted.setdefault(word, len(wanted)) for word in words]
        assert known.number(pa.array(words)).tolist() == expected


def test_ids_with_one_hash_stay_different(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_the_same(offsets: Any, data: Any, hashes: Any) -> None:
        hashes.fill(7)

    monkeypatch.setattr(compiled, "COMPILE_FROM", 0)
    monkeypatch.setattr(ids, "_hash", SimpleNamespace(compiled=all_the_same))
    words = [f"m{k}" for k in range(200)]
    known = Ids()
    assert known.number(pa.array(words)).tolist() == list(range(200))
    assert known.number(pa.array(words[::-1])).tolist() == list(range(200))[::-1]


def test_numbers_have_32_bits() -> None:
    assert Ids().number(pa.array(["a"])).dtype == np.int32
