"""Parts of the agreement on node views: who asks to be let in, who is at odds with whom, and views
that somebody says were decided.

Everything in here comes from other nodes. So each table is bounded, and what is not said again
expires.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.membership.node_view import NodeEntry, NodeView, won

MAX_APPLICANTS = 1024  # that ask to be let in
MAX_CLAIMS = 64  # views that are looked into


class Applicant(PlainState):
    """A node that asks to be let in."""

    def __init__(self, node: NodeEntry, now: int) -> None:
        self.node = node
        self.since = now  # the tick at which it first asked
        self.asked_at = now  # the tick at which it last asked
        self.reached_by: set[ProcessId] = set()


class Applicants(PlainState):
    """All that ask. Who does not ask again is forgotten after `patience` ticks."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.of: dict[ProcessId, Applicant] = {}

    def __contains__(self, pid: ProcessId) -> bool:
        return pid in self.of

    def ask(self, node: NodeEntry, now: int, connected: Collection[ProcessId]) -> Applicant | None:
        """It asks, perhaps again. None: there are too many."""
        if node.pid not in self.of:
            if len(self.of) >= MAX_APPLICANTS and not self._make_room(connected):
                return None
            self.of[node.pid] = Applicant(node, now)
        applicant = self.of[node.pid]
        applicant.asked_at = now
        return applicant

    def _make_room(self, connected: Collection[ProcessId]) -> bool:
        """One to which there is no connection goes first: perhaps there is no such node."""
        unreached = next((pid for pid in self.of if pid not in connected), None)
        if unreached is not None:
            del self.of[unreached]
        return unreached is not None

    def drop(self, pid: ProcessId) -> None:
        self.of.pop(pid, None)

    def expire(self, now: int) -> None:
        self.of = {p: a for p, a in self.of.items() if now - a.asked_at <= self.patience}

    def newest_lives(self) -> list[Applicant]:
        """Of several lives of one node only the last can be alive."""
        newest: dict[str, Applicant] = {}
        for applicant in self.of.values():
            name, incarnation = applicant.node.name, applicant.node.incarnation
            if name not in newest or newest[name].node.incarnation < incarnation:
                newest[name] = applicant
        return [a for a in self.of.values() if newest[a.node.name] is a]


class Disputes(PlainState):
    """Who says that it does not hear whom. A word counts for `patience` ticks; a dispute is ripe
    when the word was repeated for as long.

    Who goes: the node that is at odds with the most others. Of just two that are at odds, the
    accuser, so that nobody removes another by its word alone; if each accuses the other, no link is
    left between them, and the younger goes.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.words: dict[tuple[ProcessId, ProcessId], tuple[int, int]] = {}  # first, last tick

    def accuse(self, accuser: ProcessId, accused: ProcessId, now: int) -> None:
        first, _ = self.words.get((accuser, accused), (now, now))
        self.words[accuser, accused] = (first, now)

    def expire(self, now: int) -> None:
        self.words = {k: w for k, w in self.words.items() if now - w[1] <= self.patience}

    def accusers(self, accused: ProcessId) -> set[ProcessId]:
        return {accuser for accuser, other in self.words if other == accused}

    def ripe(self) -> set[tuple[ProcessId, ProcessId]]:
        return {k for k, (first, last) in self.words.items() if last - first >= self.patience}

    def is_given_up(self, leader: ProcessId, others: Collection[ProcessId]) -> bool:
        """Do more than half of the others no longer hear the one that leads?"""
        against = {accuser for accuser, accused in self.ripe() if accused == leader}
        return 2 * len(against.intersection(others)) > len(others)

    def who_goes(self, oldest_first: tuple[ProcessId, ...], leader: ProcessId) -> ProcessId | None:
        """As the one that leads sees it."""
        ripe = {pair for pair in self.ripe() if set(pair) <= set(oldest_first)}
        at_odds = Counter(p for pair in {frozenset(pair) for pair in ripe} for p in pair)
        at_odds.pop(leader, None)
        if not at_odds:
            return None
        worst = max(at_odds.values())
        candidates = [p for p in oldest_first if at_odds.get(p) == worst]
        if worst == 1:
            accuser, accused = min(ripe, key=lambda pair: sorted(map(oldest_first.index, pair)))
            answer = (accused, accuser)
            if accused != leader and answer in self.words and answer not in ripe:
                return None  # the other says the same, and began a moment later
            if accused == leader or answer not in ripe:
                return accuser if accuser != leader else accused
            candidates = [p for p in candidates if p in (accuser, accused)]
        return candidates[-1]


class Claim(PlainState):
    """Somebody says that this view was decided, and this node has not accepted it. So it listens:
    does the claimant say it again; who of the voters that must have decided it denies it, and who
    has said nothing yet?"""

    def __init__(
        self,
        src: ProcessId,
        view: NodeView,
        now: int,
        electors: tuple[ProcessId, ...],
        heard: Iterable[ProcessId],
    ) -> None:
        self.src = src
        self.view = view
        self.since = now
        self.repeated = False  # in a later tick
        self.electors = electors
        self.unspoken = set(heard)
        self.deniers: set[ProcessId] = set()

    def hear(self, p: ProcessId, denies: bool) -> None:
        """A word of p, later than the claim."""
        self.unspoken.discard(p)
        if denies and p == self.src:
            self.repeated = False
        if denies and p in self.electors:
            self.deniers.add(p)
        else:
            self.deniers.discard(p)

    def is_possible(self, by_all: bool) -> bool:
        """May those who do not deny it have decided it?"""
        if by_all:
            return not self.deniers
        return won(set(self.electors) - self.deniers, self.electors)
