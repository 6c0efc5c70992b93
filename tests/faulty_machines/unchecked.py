"""A faulty machine whose invariants nobody checks: what it does must show the fault by itself."""

from __future__ import annotations

from functools import cache

from ordercast.core.protocol import OrderingProtocol


@cache
def unchecked(machine: type[OrderingProtocol]) -> type[OrderingProtocol]:
    """The same machine. Its invariants would stop a schedule before a promise is broken."""

    def invariants(self: OrderingProtocol) -> None:
        """Not checked."""

    return type(machine.__name__, (machine,), {"invariants": invariants})
