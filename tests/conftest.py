"""What holds for every test.

A failing property prints the line that replays it (`@reproduce_failure`), and no example fails for
being slow: tests never judge time. A test that is a coroutine runs in an event loop of its own; its
limit is a guard against hanging, not a measurement.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUARD_SECONDS = 120

settings.register_profile("ordercast", print_blob=True, deadline=None)
settings.load_profile("ordercast")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), GUARD_SECONDS))
    return True


@pytest.fixture
def packet_errors() -> list[logging.LogRecord]:
    """What nodes of this test logged of errors that peers brought out: it expects some."""
    return []


@pytest.fixture(autouse=True)
def no_error_hides_behind_a_peer(request: pytest.FixtureRequest) -> Iterator[None]:
    """A live node survives an error of ours that a packet brings out. A test does not."""
    found: list[logging.LogRecord] = []
    expected = "packet_errors" in request.fixturenames
    if expected:
        found = request.getfixturevalue("packet_errors")
    handler = logging.Handler(logging.ERROR)
    handler.emit = found.append  # type: ignore[method-assign]
    log = logging.getLogger("ordercast.runtime.packet_errors")
    log.addHandler(handler)
    yield
    log.removeHandler(handler)
    assert expected or not found, found[0].getMessage()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests that carry `xdist_group("spark")`."""
    from ordercast.pipeline.spark.session import local_session  # only tests that use it pay for it

    session = local_session("local[2]", app_name="tests")
    yield session
    session.stop()
