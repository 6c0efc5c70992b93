"""Live tests need namespaces of the kernel. Where those are refused, the reason is shown."""

from __future__ import annotations

import pytest

from netlab.namespaces import refusal


@pytest.fixture(autouse=True, scope="session")
def _namespaces() -> None:
    reason = refusal()
    if reason is not None:
        pytest.skip(reason)
