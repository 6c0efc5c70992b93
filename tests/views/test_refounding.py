"""A group all of whose members went, one after the other: every order of going, dying, coming back
and asking, up to a depth. Nothing that was stable is lost; numbers of views rise for ever."""

from __future__ import annotations

from collections import deque

import pytest

from ordercast.membership.node_view import NodeEntry
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Row, WantIn
from ordercast.views.target import REMEMBERING, Target
from tests.views.oracle_cluster import ORDERS

NAMES = ("a", "b", "c")
GROUP = GroupEntry(1, "g", "hybrid", "seq", 7)
COORDINATOR = NodeEntry(0, "z", 1)
NEVER = 1 << 30  # ticks


def pages(protocol):
    return ORDERS["hybrid"]


class World:
    """The coordinator's machines, and what three nodes remember."""

    def __init__(self, target_type=Target):
        self.target, self.directory = target_type(0, 1, NEVER), Directory()
        self.status = ["in"] * 3
        self.life = [1] * 3
        self.view = [1] * 3  # the last view of each that it remembers; 0: none
        self.holds = [frozenset()] * 3
        self.messages = 0
        self.gone = {}  # went without a word, and rows name them
        self.stopped = False  # a change is under way
        members = tuple(self.pid(i) for i in range(3))
        self.directory.put(Row(GROUP, 1, 1, members, (), 0))
        self.target.begin(self.directory, self.nodes(), {}, pages)

    def pid(self, i):
        return 10 * self.life[i] + i + 1

    def entry(self, i):
        return NodeEntry(self.pid(i), NAMES[i], self.life[i], remembers=self.view[i] > 0)

    def nodes(self):
        there = [self.entry(i) for i in range(3) if self.status[i] in ("in", "back")]
        return (COORDINATOR, *there)

    def copy(self):
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.target, twin.directory = self.target.copy(), self.directory.copy()
        twin.status, twin.life = list(self.status), list(self.life)
        twin.view, twin.holds = list(self.view), list(self.holds)
        twin.gone = dict(self.gone)
        return twin

    def key(self):
        mine = (self.status, self.life, self.view, self.holds, self.messages, self.stopped)
        return repr(mine), self.directory.fingerprint(), self.target.fingerprint()

    # what can happen

    def steps(self):
        if self.stopped:
            yield "the change is installed", World.install
        elif "in" in self.status and self.messages < 2:
            yield "a message is stable", World.message
        for i, status in enumerate(self.status):
            if status == "in":
                yield f"{NAMES[i]} is out", lambda w, i=i: w.go(i, "out")
            if status in ("in", "out", "back"):
                yield f"{NAMES[i]} dies", lambda w, i=i: w.go(i, "dead")
            if status in ("out", "dead") and self.life[i] < 3:
                yield f"{NAMES[i]} asks again", lambda w, i=i: w.come_back(i)

    def message(self):
        for i, status in enumerate(self.status):
            if status == "in":
                self.holds[i] |= {self.messages}
        self.messages += 1

    def go(self, i, status):
        entry, was = self.entry(i), self.status[i]
        self.status[i] = status
        if status == "dead":
            self.view[i], self.holds[i] = 0, frozenset()
        if was == "out":
            return  # nobody sees it
        self.gone[entry.pid] = entry
        self.target.begin(self.directory, self.nodes(), self.remembered(entry), pages)
        for j in range(3):
            if self.status[j] == "back":
                self.ask(j)
        self.stopped = True

    def remembered(self, entry):
        """Everybody whom a row names, and who went without a word."""
        return {p: node for p, node in self.gone.items() if p in self.directory.of}

    def come_back(self, i):
        self.life[i] += 1
        self.status[i] = "back"
        self.target.arrived(self.directory, (self.entry(i),), pages)
        self.ask(i)
        if not self.stopped:
            self.install()

    def ask(self, i):
        want = WantIn(GROUP, "member", memory=self.view[i])
        self.target.want_in(self.directory, self.pid(i), want, pages)

    def install(self):
        """All changes that the coordinator aims at."""
        self.stopped = False
        while rows := self.target.next_rows(self.directory, (), pages):
            before, after = self.directory.rows[1], rows[1]
            assert after.era == before.era + 1
            if after.members != before.members:
                assert after.number > before.number, "numbers of views rise"
            self.let_in(before, after)
            self.directory.put(after)
            self.target.installed(self.directory, rows.values(), pages)
            self.target.invariants(self.directory)

    def let_in(self, before, after):
        inside = [i for i in range(3) if self.pid(i) in after.members]
        goes_on = [i for i in inside if self.pid(i) in before.members]
        if inside and not goes_on:
            first = inside[0]
            others = frozenset().union(*(self.holds[j] for j in range(3)))
            assert self.holds[first] >= others, "the state of the group is lost"
        givers = goes_on or inside[:1]
        for i in inside:
            self.status[i], self.holds[i] = "in", self.holds[givers[0]]
            self.view[i] = after.number

    def is_stuck(self):
        return not self.stopped and all(status == "back" for status in self.status)


def explore(depth, target_type=Target, world_type=World):
    """All worlds up to this depth; how many there are."""
    start = world_type(target_type)
    seen, todo = {start.key()}, deque([(start, ())])
    while todo:
        world, path = todo.popleft()
        assert not world.is_stuck(), f"nobody may begin: {path}"
        for word, step in world.steps() if len(path) < depth else ():
            after = world.copy()
            try:
                step(after)
            except AssertionError as error:
                raise AssertionError(f"{error}: {'; '.join((*path, word))}") from error
            if after.key() not in seen:
                seen.add(after.key())
                todo.append((after, (*path, word)))
    return len(seen)


class FirstCome(Target):
    """Whoever asks first founds the group."""

    def awaited(self, directory, g):
        return []


class FoundsWhileMembersAreNamed(Target):
    """A group is founded again before it is known who of its last members went without a word."""

    def _refound(self, directory, g, page):
        row = directory.rows[g]
        directory.rows[g] = Row(row.entry, row.number, row.era, (), (), row.leader, row.absent)
        super()._refound(directory, g, page)
        directory.rows[g] = row


class KnowsTheLastToGo(World):
    """Of those that went one after the other only the last is remembered."""

    def remembered(self, entry):
        return {entry.pid: entry}


def test_a_group_whose_members_all_went_begins_again_with_its_newest_state():
    assert explore(6) > 2000


@pytest.mark.parametrize(
    "wrong", [{"target_type": FoundsWhileMembersAreNamed}, {"world_type": KnowsTheLastToGo}]
)
def test_who_asks_while_a_crash_is_being_settled_waits_for_a_newer_state(wrong):
    with pytest.raises(AssertionError, match="the state of the group is lost"):
        explore(7, **wrong)


def test_a_coordinator_that_waits_for_nobody_loses_what_was_stable():
    with pytest.raises(AssertionError, match="the state of the group is lost"):
        explore(6, FirstCome)


class WaitsFromTheBeginning(Target):
    """Who gave up and asks again waits as if it had never asked."""

    def tick(self, directory, pages):
        self.waited = {g: ticks for g, ticks in self.waited.items() if g in self.founders}
        return super().tick(directory, pages)


@pytest.mark.parametrize(
    ("target_type", "comes_in"), [(Target, True), (WaitsFromTheBeginning, False)]
)
def test_who_gives_up_and_asks_again_comes_in_at_last(target_type, comes_in):
    """The last member went for good; a joiner has less patience than the group."""
    target, directory, joiner, last = target_type(0, 1, 10), Directory(), 5, 4
    nodes = (COORDINATOR, NodeEntry(joiner, "new", 1))
    directory.put(Row(GROUP, 1, 1, (last,), (), 0))
    target.begin(directory, nodes, {last: NodeEntry(last, "a", 1)}, pages)
    for row in target.next_rows(directory, (), pages).values():
        directory.put(row)
    for _ in range(8):
        target.want_in(directory, joiner, WantIn(GROUP, "member"), pages)
        for _ in range(4):
            target.tick(directory, pages)
        if target.next_rows(directory, (), pages):
            break
        target.want_out(directory, joiner, GROUP.gid, pages)
        target.tick(directory, pages)
    assert bool(target.next_rows(directory, (), pages)) is comes_in


@pytest.mark.parametrize(("memories", "times"), [((0,), 1), ((3,), REMEMBERING), ((0, 3), 24)])
def test_an_older_state_waits_longer_for_a_newer_one_than_no_state_does(memories, times):
    """The last member saw view 5 and went without a word; who asks has seen less, or nothing. One
    that remembers keeps those that do not waiting with it, and then its state is the one."""
    patience, last = 10, 4
    target, directory = Target(0, 1, patience), Directory()
    askers = {5 + k: memory for k, memory in enumerate(memories)}
    nodes = (COORDINATOR, *(NodeEntry(pid, f"n{pid}", 1) for pid in askers))
    directory.put(Row(GROUP, 5, 1, (last,), (), 0))
    target.begin(directory, nodes, {last: NodeEntry(last, "a", 1)}, pages)
    for row in target.next_rows(directory, (), pages).values():
        directory.put(row)
    for pid, memory in askers.items():
        target.want_in(directory, pid, WantIn(GROUP, "member", (), memory), pages)
    waited = 0
    while not target.next_rows(directory, (), pages) and waited < NEVER:
        target.tick(directory, pages)
        waited += 1
    assert waited == times * patience
    [row] = target.next_rows(directory, (), pages).values()
    newest = max(askers.values())
    assert row.members == tuple(pid for pid, memory in askers.items() if memory == newest)
