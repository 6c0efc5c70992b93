"""View changes without a flush, as the source of TOTAL has them: what it guarantees then.

The queue is cleared. What others hold is not looked at, and what was under way is not asked for
again: the source repeats no request, and a repeat would double a message that some have.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId
from ordercast.core.protocol import OrderingProtocol
from ordercast.errors import ConfigError
from ordercast.protocols.javagroups import JavaGroupsTotal

BEYOND_A_PREFIX = frozenset(
    ("validity", "agreement", "total.gapless", "fifo.group", "causal.group")
)
"""Promises that nobody can expect without a flush. One order of what is delivered is none of them.
A message under way is lost, and a later one of its sender is not: that is neither FIFO nor causal.
"""


class TotalWithoutFlush(JavaGroupsTotal):
    """Of the messages of a view survivors deliver a prefix each, in one order."""

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        self.arrived.clear()

    def on_view(self, view: View) -> None:
        self.requests.clear()
        super().on_view(view)


def without_flush(protocol: str) -> type[OrderingProtocol]:
    """This protocol with views that change without a flush; `ConfigError` if there is none."""
    if protocol != JavaGroupsTotal.declaration.name:
        raise ConfigError(f"flush = false and protocol = {protocol!r}: only 'javagroups' has both")
    return TotalWithoutFlush
