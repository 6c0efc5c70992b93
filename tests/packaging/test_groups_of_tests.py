"""Tests that share something dear, as a Spark session, are given to one worker."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("kept together")
def test_the_runner_keeps_a_group_together(request: pytest.FixtureRequest) -> None:
    """pytest-xdist groups by a suffix of the name; with pytest 9.2 it was lost without a word."""
    if request.config.getoption("loadgroup", default=False):
        assert request.node.nodeid.endswith("@kept together")
