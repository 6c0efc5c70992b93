"""What a peer says of groups and changes, measured by what is in force here.

Everything that a node keeps, or passes on, is looked at first. Whoever says what cannot be gets a
`PeerError`; nothing that comes through here can make a machine fail later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ordercast.core.changing import End, FramesEnd, Held, NumbersEnd, NumbersHeld, Places
from ordercast.core.ids import check_name
from ordercast.core.numbers import MAX_COUNT, MAX_ERA, ViewNumbers
from ordercast.core.waiting import NOBODY
from ordercast.errors import PeerError
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Change, Next, Report, Row, Rows
from ordercast.views.target import MAX_ABSENT, Pages

MAX_GROUP = 2**32 - 3  # the numbers above it, and zero, are channels of the cluster itself
MAX_GROUPS = 65_536  # of one cluster, those without members included
MAX_BEHIND = 65_536  # changes that a node may lack
MAX_PROCESS = 2**32 - 1


def bounded(what: str, value: int, low: int, high: int = MAX_COUNT) -> None:
    """A number between these."""
    if not low <= value <= high:
        raise PeerError(f"{what} {value} is not between {low} and {high}")


def pids(what: str, found: Iterable[int]) -> None:
    """Process numbers, each of them once."""
    found = tuple(found)
    for p in found:
        bounded(what, p, 0, MAX_PROCESS)
    if len(set(found)) != len(found):
        raise PeerError(f"a {what} is named twice")


def entry(group: GroupEntry, pages: Pages) -> None:
    """The description of a group."""
    bounded("group", group.gid, 1, MAX_GROUP)
    for what, name in (("group", group.name), ("order", group.order)):
        try:
            check_name(what, name)
        except ValueError as error:
            raise PeerError(str(error)) from error
    pages(group.protocol)


def guests(said: Collection[int], group: GroupEntry, pages: Pages) -> None:
    """Those who send to a group and are not members, where its protocol lets them."""
    if said and (why := pages(group.protocol).declaration.closed):
        raise PeerError(f"group {group.gid} has no guests: {why}")


def row(said: Row, pages: Pages, numbers: ViewNumbers) -> None:
    """A row of the directory, by itself. With one era a view number rises by one step at most; it
    leaps when the cluster is recovered, and no further than to where its generation begins."""
    entry(said.entry, pages)
    guests(said.guests, said.entry, pages)
    bounded("era", said.era, 1, MAX_ERA)
    bounded("view", said.number, 0, numbers.highest(said.era))
    pids("member", (*said.members, *said.guests))
    bounded("leader", said.leader, NOBODY, MAX_PROCESS)
    if len(said.absent) > MAX_ABSENT:
        raise PeerError(f"{len(said.absent)} are absent; at most {MAX_ABSENT} are remembered")


def change(said: Change, directory: Directory | None, pages: Pages, numbers: ViewNumbers) -> None:
    """A change that may be installed next here; without a directory, at another node."""
    bounded("change", said.number, 1)
    pids("node", said.who)
    groups = [coming.row.entry.gid for coming in said.groups]
    if len(set(groups)) != len(groups):
        raise PeerError("a change names a group twice")
    names(said.groups, directory)
    for coming in said.groups:
        row(coming.row, pages, numbers)
        if directory is not None:
            succeeds(directory, coming.row, 1, directory.floor)
        end(coming.end, coming.row, pages)


def names(coming: Iterable[Next], directory: Directory | None) -> None:
    """A name is of one group."""
    known = {} if directory is None else directory.named
    found = {one.row.entry.name: one.row.entry.gid for one in coming}
    for one in coming:
        name, g = one.row.entry.name, one.row.entry.gid
        if found[name] != g or known.get(name, g) != g:
            raise PeerError(f"group {g} has the name of another one")


def succeeds(directory: Directory, after: Row, changes: int, last_era: int) -> None:
    """So many changes may have brought this row: of a group that is known here, or of a new one,
    which begins above all that were forgotten."""
    before = directory.rows.get(after.entry.gid)
    if before is not None:
        follows(before, after, changes)
    else:
        bounded(f"era of group {after.entry.gid}", after.era, 1, last_era + changes)


def follows(before: Row, after: Row, changes: int) -> None:
    """A row may have come from this one by so many changes."""
    g = before.entry.gid
    if after.entry != before.entry:
        raise PeerError(f"group {g} is another one than before")
    bounded(f"era of group {g}", after.era, before.era, before.era + changes)
    bounded(f"view of group {g}", after.number, before.number)


def end(said: End, of: Row, pages: Pages) -> None:
    """The end of an era, of the kind that its protocol knows."""
    kind = type(pages(of.entry.protocol).nothing_held())
    if type(said) is not kind:
        raise PeerError(f"{type(said).__name__} is no end of an era of {of.entry.protocol}")
    if isinstance(said, NumbersEnd):
        bounded("end", said.end, 0)
        pids("origin", (p for p, _ in said.last))
        for _, n in said.last:
            bounded("frame", n, 0)


def rows(said: Rows, done: int, directory: Directory, pages: Pages, numbers: ViewNumbers) -> None:
    """A directory that is newer than the one here, or the first."""
    last_era = directory.last_era
    bounded("change", said.number, 0)
    bounded("floor", said.floor, directory.floor, MAX_ERA)
    if done:
        bounded("change", said.number, 0, done + MAX_BEHIND)
        bounded("floor", said.floor, 0, last_era + max(0, said.number - done))
    if len(said.rows) > MAX_GROUPS:
        raise PeerError(f"{len(said.rows)} groups; at most {MAX_GROUPS} are allowed")
    if said.number != (0 if said.newest is None else said.newest.number):
        raise PeerError(f"the rows of change {said.number} come without it, or with another one")
    groups = [one.entry.gid for one in said.rows]
    if len(set(groups)) != len(groups):
        raise PeerError("a group has two rows")
    if len({one.entry.name for one in said.rows}) != len(groups):
        raise PeerError("two groups have one name")
    for one in said.rows:
        row(one, pages, numbers)
        if done and said.number >= done:
            succeeds(directory, one, said.number - done, last_era)
    if said.newest is not None:
        change(said.newest, None, pages, numbers)


def report(
    said: Report,
    done: int,
    goal: Iterable[int],
    directory: Directory,
    pages: Pages,
    numbers: ViewNumbers,
    *,
    anew: bool,
) -> None:
    """What a node says that it holds."""
    bounded("change", said.done, 0 if anew else done, done + MAX_BEHIND if anew else done)
    if anew and said.done and (said.newest is None or said.newest.number != said.done):
        raise PeerError(f"change {said.done} is reported without it")
    for one in (said.newest, said.prepared):
        if one is not None:
            change(one, directory if one.number == done + 1 else None, pages, numbers)
    if said.prepared is not None and said.prepared.number != said.done + 1:
        raise PeerError(f"change {said.prepared.number} is prepared after {said.done}")
    groups = [g for g, _ in said.held]
    if len(set(groups)) != len(groups) or not set(groups).issubset(goal):
        raise PeerError("a group is reported twice, or unasked")
    for g, what in said.held:
        before = directory.rows.get(g)
        if before is not None:
            held(what, before, pages)


def held(said: Held, of: Row, pages: Pages) -> None:
    """What a node has of one group."""
    numbered = type(pages(of.entry.protocol).nothing_held()) is not FramesEnd
    if isinstance(said, NumbersHeld) is not numbered:
        raise PeerError(f"{type(said).__name__} is no report of {of.entry.protocol}")
    bounded("era", said.era, 0)
    if isinstance(said, NumbersHeld):
        bounded("number", said.got, 0)
        bounded("number", said.delivered, 0, said.got)
        before = 0
        for head in said.heads:
            bounded("number", head.N, before + 1, said.got)
            before = head.N
            bounded("frame", head.n, 1)
            bounded("origin", head.origin, 0, MAX_PROCESS)
            places(head.needs)
        pids("origin", (p for p, _ in said.last))
        for _, n in said.last:
            bounded("frame", n, 0)


def places(said: Places) -> None:
    """Places in other groups."""
    for g, era, number in said:
        bounded("group", g, 1, MAX_GROUP)
        bounded("era", era, 0)
        bounded("number", number, 0)
