"""Tests of the runtime are coroutines; each runs in an event loop of its own, within a time limit.

The limit is a guard against a test that hangs, not a measurement.
"""

from __future__ import annotations

import asyncio
import inspect

import pytest

GUARD_SECONDS = 30


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), GUARD_SECONDS))
    return True
