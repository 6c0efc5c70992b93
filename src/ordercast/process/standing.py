"""What must always hold between the groups that are open at a node and its directory.

A change is one step: the rows and the views of all groups concerned are replaced together. So after
every step, also while a change is under way or this node has no majority,

    a part     this node takes part in the view of a group, as a member, a guest or the one who
               numbers it, if and only if the row says so
    the era    ... then the view is of the era of the row
    the view   ... and if it may send, it is the view of the row; where there are several
               sequencers, that holds of every group that is open

A view of a group that this node has left is not looked at: nobody tells it of the next ones. Nor is
a group that the directory has forgotten, because nobody was in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core.events import View
from ordercast.views.headers import Row

if TYPE_CHECKING:
    from ordercast.process.process import Process


def check(process: Process) -> None:
    """For simulators and explorers, after every step."""
    for g, row in process.rows.items():
        part = process.me in row.concerned
        assert process.groups.takes_part(g) == part, "a node takes part where the row says so"
        machine = process.groups.machines.get(g)
        if machine is None or not (part or machine.together is not None):
            continue
        view = machine.views.get(g)
        assert view is not None, "the view of an open group is known"
        assert view.era == row.era, "a view is of the era of the row"
        if machine.together is not None or process.me in (*row.members, *row.guests):
            assert _is_same(view, row), "a view is that of the row"


def _is_same(view: View, row: Row) -> bool:
    """In all that both say, beside their era."""
    return (
        view.number == row.number
        and view.members == row.members
        and view.guests == row.guests
        and view.leader == row.leader
        and view.subgroups == row.subgroups
    )
