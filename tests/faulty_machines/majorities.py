"""Faults in uniform multicast."""

from __future__ import annotations

import msgspec

from ordercast.core.events import View
from ordercast.protocols.reliable import Reliable
from ordercast.protocols.uniform import Uniform


class ReliableCalledUniform(Reliable):
    """Relays, then delivers: right only if packets outlive the process that sent them."""

    declaration = msgspec.structs.replace(
        Reliable.declaration, promises=Uniform.declaration.promises
    )


class CountsTheFirstView(Uniform):
    """Asks for a majority of the view that it installed first, whatever the group is now."""

    def on_view(self, view: View) -> None:
        first = self.majority
        super().on_view(view)
        self.majority = first or self.majority
