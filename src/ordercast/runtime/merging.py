"""Finds out which views unite two sides of a partition. Both sides can tell.

A node that joins the other side says in its entry with which nodes it was before. To the nodes that
stay, members of the group that come back with a former side are the other side. To a node that
changes sides, its own first view is the union: members with the same former side came with it, and
the others are the chosen side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ordercast.core.ids import ProcessId
from ordercast.runtime.stream_events import Merge

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership


def comes_over(member: Membership, before: Sequence[ProcessId]) -> bool:
    """Is this the first view of the group after this node came over from another side?"""
    return bool(member.former) and not before


def merge_of(
    member: Membership, before: Sequence[ProcessId], members: Sequence[ProcessId]
) -> Merge | None:
    """The sides that this view unites; None if it unites none."""
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
