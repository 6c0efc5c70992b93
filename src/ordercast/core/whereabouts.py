"""Where a node is: which site, and whether it offers to be the gateway of that site."""

from __future__ import annotations

import msgspec


class Whereabouts(msgspec.Struct, frozen=True, array_like=True):
    """As the node says itself. It holds for as long as its number does."""

    site: str = ""  # empty: it does not say
    gateway: bool = False  # it is well connected: others of its site are asked only without it


NOWHERE = Whereabouts()
