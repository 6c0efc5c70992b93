"""One line for people on what each property says."""

from __future__ import annotations

_MEANINGS = {
    "wellformed": "the rows do not contradict one another",
    "no_duplication": "nobody delivers a message twice",
    "no_creation": "what is delivered was sent before, to that group",
    "membership": "a process delivers only while it is a member",
    "validity": "a correct sender's message is delivered",
    "agreement": "what one correct member delivers, all that owe it deliver",
    "fifo.group": "messages of one sender to one group arrive in the order sent",
    "fifo.global": "messages of one sender arrive in the order sent, over all groups",
    "causal.group": "a reply never arrives before what it answers, inside a group",
    "causal.global": "a reply never arrives before what it answers, over all groups",
    "total.group": "all members of a group see its messages in one order",
    "total.global": "one single order fits what everybody sees",
    "total.pairwise": "no two processes see two messages in opposite orders",
    "total.gapless": "nobody skips a message that others delivered earlier",
    "hybrid.total_fifo": "total.group and fifo.group",
    "hybrid.total_causal": "total.global and causal.global",
    "hybrid.kindberg": "total.group and causal.global",
    "views": "a view has one member list, and views come in order",
    "vsync": "who goes through the same two views delivered the same between them",
    "sending_view": "a message is delivered in the view it was sent in",
}


FAMILIES = (
    ("The record and the deliveries", ("wellformed", "no_", "membership", "validity", "agreement")),
    ("Order", ("fifo.", "causal.", "total.")),
    ("Orders together", ("hybrid.",)),
    ("Views", ("views", "vsync", "sending_view")),
)  # heading, and how the names begin


def meaning(name: str) -> str:
    """What a property says. An order that we do not know has no meaning here."""
    plain = name.removesuffix(".uniform")
    also = "" if plain == name else ", also for processes that crashed later"
    return _MEANINGS.get(plain, "an order that is not known here") + also
