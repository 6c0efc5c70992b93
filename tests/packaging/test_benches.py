"""`make bench` measures the code as it is: every part of it is there."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import bench


@pytest.mark.parametrize("name", [found.name for found in pkgutil.iter_modules(bench.__path__)])
def test_every_part_of_the_bench_can_be_imported(name: str) -> None:
    import_module(f"bench.{name}")
