"""Which views unite two sides of a partition: both sides can tell, by who comes over.

A node that comes over says in its entry with whom it was. To those who stay, members of the group
who come back with a former side are the other side. To one that comes over, its own first view is
the union: those with the same former side came with it, the others are the chosen side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ordercast.core.ids import ProcessId
from ordercast.runtime.stream_events import Merge

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership


def comes_over(member: Membership, before: Sequence[ProcessId]) -> bool:
    """Is this node's first view of the group one to which it comes over from another side?"""
    return bool(member.former) and not before


def merge_of(
    member: Membership, before: Sequence[ProcessId], members: Sequence[ProcessId]
) -> Merge | None:
    """What unites with this view; None: nothing does."""
    formers = {p: member.former_of(p) for p in members}
    if comes_over(member, before):
        came = [p for p in members if formers[p] == formers[member.me]]
    else:
        came = [p for p in members if p not in before and formers[p] and before]
        if not member.past.intersection(member.directory.names_of(came)):
            return None  # they are new to this group
    stayed = [p for p in members if p not in came]
    if not came or not stayed:
        return None
    names = member.directory.names_of
    return Merge(member.group.name, (names(stayed), names(came)), names(stayed))
