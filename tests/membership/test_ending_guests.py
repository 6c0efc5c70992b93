"""What the end of a node view knows of guests, where views are numbered among messages."""

from __future__ import annotations

from typing import Any

from ordercast.core.events import Kept
from ordercast.core.ids import ProcessId
from ordercast.machinery.numbering import VIEW_ENTRY
from ordercast.membership.cluster_headers import Attempt, GroupReport, NodeReport
from ordercast.membership.ending import Ending, NextViews
from ordercast.membership.nodes import Ballot, GroupEntry, NodeEntry, NodeView
from ordercast.protocols.sequencing.orders import SequencingHybrid

G = GroupEntry(1, "g", "hybrid", "sequencing_hybrid", 0)
NOW = Attempt(9, 1, 1)
NODES = (1, 2, 3, 4)
FIVE = NodeView(5, tuple(NodeEntry(p, f"n{p}", 1) for p in (0, *NODES)))

Members = tuple[ProcessId, ...]


def group(members: Members, guests: Members, **fields: Any) -> GroupReport:
    plain = {"delivers": False, "mark": 0, "progress": 0, "last": ()}
    return GroupReport(G, 3, 7, members, guests, **{**plain, **fields})


def view_entry(N: int, members: Members, guests: Members) -> Kept:
    return Kept(VIEW_ENTRY, N, (N, 3, len(members), *members, *guests), b"")


def resolve(
    groups: dict[ProcessId, GroupReport],
    frames: dict[ProcessId, tuple[Kept, ...]] | None = None,
    awaited: Members = (),
) -> NextViews:
    """Node 0, which numbered the group, is dead."""
    ending = Ending(NOW, NODES, into=None)
    ballot = Ballot(5, 0, FIVE.pids)
    for p in NODES:
        kept = (frames or {}).get(p, ())
        ending.frames[p] = {(G.gid, entry.origin, entry.n): entry for entry in kept}
        own = (groups[p],) if p in groups else ()
        waits = (G.gid,) if p in awaited else ()
        said = NodeReport(NOW, None, FIVE, (ballot,), (), None, own, len(kept), 1, waits)
        ending.reported(p, said)
    found = ending.resolve(voting=True, stride=1, pages=lambda _: SequencingHybrid)
    assert isinstance(found, NextViews)
    return found


def test_a_view_that_changes_only_guests_counts_though_its_number_is_not_new() -> None:
    """3 has left by entry 5, which 2 has and has not delivered."""
    before = group((1, 2), (3,), delivers=True, progress=4)
    found = resolve(
        {1: before, 2: before, 3: group((1, 2), (3,), progress=4)},
        {2: (view_entry(5, (1, 2), ()),)},
    )
    assert (found.groups[1].members, found.groups[1].guests) == ((1, 2), ())


def test_a_guest_that_a_lost_view_let_in_stays() -> None:
    before = group((1, 2), (), delivers=True, progress=4)
    came = group((1, 2), (3,), progress=6, last=((3, 65_536),))
    found = resolve({1: before, 2: before, 3: came})
    assert found.groups[1].guests == (3,)
    assert dict(found.groups[1].last)[3] == 65_536  # where its stay began


def test_a_guest_hears_that_a_group_without_members_has_ended() -> None:
    left = (view_entry(8, (), (3,)), view_entry(9, (), ()))
    here = group((), (), progress=9)
    found = resolve({2: here, 3: group((), (3,), progress=8)}, {2: left})
    assert found.groups[1].guests == ()
    assert 3 in found.told[1]


def test_who_waits_to_be_let_in_hears_that_word_of_the_old_era_is_void() -> None:
    before = group((1, 2), (), delivers=True, progress=4)
    found = resolve({1: before, 2: before}, awaited=(4,))
    assert 4 in found.told[1] and 4 not in found.groups[1].members
    ended = resolve({2: group((), (), progress=9)}, awaited=(4,))
    assert ended.told[1] == (4,)
