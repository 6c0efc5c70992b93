"""Machines that are wrong on purpose, one for each rule: the judge or an invariant must see it."""

from __future__ import annotations

import msgspec

from ordercast.core.changing import Ending, Head
from ordercast.protocols.sequencing.book import Numbering
from ordercast.protocols.sequencing.seat import Marker
from ordercast.views.changes import Changes
from ordercast.views.headers import Rows
from ordercast.views.target import Target
from tests.views.oracle_cluster import ORDERS

replace = msgspec.structs.replace


# -- the sequencing service: mixins over a part of any of the four orders, or over all of it -------


class NoNeeds:
    """A frame is delivered though earlier frames of its author may still be lost."""

    part = "contexts"

    def of_next(self, p, g, book, asked):
        context, _ = super().of_next(p, g, book, asked)
        return context, ()


class NoCut:
    """A frame stays though what it needs died with the sequencer."""

    @classmethod
    def decide(cls, groups):
        return super().decide({g: with_reports(e, without_needs) for g, e in groups.items()})


def with_reports(ending, change):
    return Ending(ending.era, {p: change(held) for p, held in ending.held.items()}, ending.dead)


def without_needs(held):
    heads = tuple(Head(head.N, head.origin, head.n) for head in held.heads)
    return replace(held, heads=heads)


class MinUnion:
    """The era ends with what all hold, and not with what somebody holds."""

    @classmethod
    def decide(cls, groups):
        def lower(ending):
            least = min((held.got for held in ending.held.values()), default=0)
            return with_reports(
                ending,
                lambda held: replace(
                    held, got=least, heads=tuple(h for h in held.heads if least >= h.N)
                ),
            )

        return super().decide({g: lower(e) for g, e in groups.items()})


class NoDrain:
    """Frames leave for another sequencer while others are under way."""

    part = "sender"

    def _may_leave(self, view):
        return True


class NoAfter:
    """A request is numbered though an earlier one of its sender was not."""

    part = "sequencer"

    def _take_up(self, p, request):
        g, era, asked, m = request
        here = tuple((h, n) for h, n in asked.after if h in self.books)
        here = tuple((h, n) for h, n in here if self.books[h].last.get(p, 0) >= n)
        return super()._take_up(p, (g, era, replace(asked, after=here), m))


class RedoGroupOnly:
    """What followed a frame that is repeated is not repeated."""

    part = "changes"

    def _repeat_unplaced(self, changed, *, covered):
        outbox = self.sender.outbox
        outbox.repeat([own for own in outbox.own.values() if own.group in changed])


class DropEarly:
    """A request of an era that has not begun here is dropped."""

    part = "sequencer"

    def _take_up(self, p, request):
        view = self.views.get(request[0])
        return view is None or request[1] > view.era or super()._take_up(p, request)


class AnswerAtOnce:
    """A guest is answered before a second node has its frame."""

    part = "sequencer"

    def _number(self, p, g, book, asked, m):
        super()._number(p, g, book, asked, m)
        if p not in book.members and p != self.me and book.others:
            self._answer(p, g, book, (asked.n, book.N), 0)


class EagerSequencer:
    """A sequencer delivers what nobody else has."""

    part = "delivery"

    def _is_secure(self, g, seat, entry):
        if self.views[g].leader == self.me:
            return seat.commit >= entry.N
        return super()._is_secure(g, seat, entry)


class NoS2:
    """Groups that meet are numbered apart."""

    together = "none"


class ReadyAtOnce:
    """A node says that it is ready though frames are missing."""

    part = "changes"

    def is_ready(self, g, end):
        return True


class LostWaits:
    """A number that was lost with its sequencer is waited for until the next view."""

    part = "delivery"

    def _may_deliver(self, g, seat, item):
        if not isinstance(item, Marker):
            for h, era, N in item.context:
                other = self.seats.get(h)
                if other is not None and h != g and other.at < (era, N):
                    self.blocked.setdefault(h, set()).add(g)
                    return False
        return super()._may_deliver(g, seat, item)


class NoJoining:
    """A joiner has no seat before its first view."""

    part = "changes"

    def prepare(self, nexts):
        super().prepare(nexts)
        self.unprepare()


class NoFence:
    """Frames that follow a change do not name it."""

    part = "contexts"

    def _fence(self, nexts, before):
        pass


class NoBarrier:
    """A view is delivered though an era that ended before it is not."""

    part = "delivery"

    def _may_deliver(self, g, seat, item):
        return isinstance(item, Marker) or super()._may_deliver(g, seat, item)


class NoLast:
    """The next sequencer does not know which frames have their numbers."""

    part = "changes"

    def _begin_era(self, number, next_era):
        end = replace(next_era.end, last=())
        return super()._begin_era(number, replace(next_era, end=end))


class ContextFalls:
    """A late delivery of an old era takes back what was seen."""

    part = "sender"

    def saw(self, h, place):
        self.context[h] = place


class EndsApart:
    """A group ends without those in which its frames need others."""

    @classmethod
    def hangs_on(cls, groups):
        return set()


class LaterEraIsOver:
    """A need in an era that has not begun here is taken for one that is over."""

    part = "delivery"

    def _is_secure(self, g, seat, entry):
        needs = tuple(
            (h, era, N)
            for h, era, N in entry.needs
            if (view := self.views.get(h)) is not None and view.era >= era
        )
        return super()._is_secure(g, seat, replace(entry, needs=needs))


class GoesOnNumbering:
    """A sequencer numbers on after its report."""

    part = "changes"

    def report(self, g):
        said = super().report(g)
        if g in self.sequencer.books:
            self.sequencer.books[g].numbering = Numbering.OPEN
        return said


class ForgetsEarly:
    """A sequencer forgets a frame when enough hold it, not when all have consumed it."""

    part = "sequencer"

    def progress(self, g, book):
        super().progress(g, book)
        book.frames = {N: entry for N, entry in book.frames.items() if book.safe < N}


class BelievesTooMuch:
    """A sequencer takes what one member has for what all have."""

    part = "sequencer"

    def acknowledged(self, p, g, ack):
        book = self.books[g]
        for q in book.others:
            if q != p and book.held[q] < ack.held:
                book.held[q] = ack.held
        super().acknowledged(p, g, ack)


class NumbersTwice:
    """A sequencer gives a number again."""

    part = "sequencer"

    def _number(self, p, g, book, asked, m):
        if book.base < book.N and book.N % 3 == 0 and len(book.frames) > 1:
            book.frames.pop(book.N)
            book.N -= 1
        super()._number(p, g, book, asked, m)


class KeepsSeat:
    """A joiner keeps its seat though the change came to nothing."""

    part = "changes"

    def unprepare(self, begun=()):
        for seat in self.member.seats.values():
            seat.source = None


# -- changes ---------------------------------------------------------------------------------------


class SharesNothingOut(Target):
    """Any node may number any group."""

    def _share_out(self, directory, g, page):
        pass


class Alone(Changes):
    """The only member of a group numbers it."""

    def __init__(self, me, stride=1, refound_ticks=1 << 30):
        super().__init__(me, stride, refound_ticks)
        self.target = SharesNothingOut(me, stride, refound_ticks)


class NoAdopt(Changes):
    """A change for which all are ready is decided again."""

    def _prepared_by_all(self):
        return None


class AsksOnce(Changes):
    """In a new term all are asked once, whoever lags behind."""

    def _install_everywhere(self, groups, change, again=()):
        self.anew = False
        super()._install_everywhere(groups, change, again)


class WishesAreEvents(Changes):
    """A wish counts as met when the row says so, whatever is under way."""

    def want_in(self, groups, want):
        if not self.is_in(groups, want):
            super().want_in(groups, want)
        else:
            self.wants[want.group.gid] = want
            self.unmet.discard(want.group.gid)


class ForgetsToStop(Changes):
    """Groups that an attempt has stopped do not begin again."""

    def _resolve(self, groups):
        self.now.reports = {p: replace(r, stopped=()) for p, r in self.now.reports.items()}
        super()._resolve(groups)


class RowsOnly(Changes):
    """One that gets the directory does not get the last change."""

    def _send_rows(self, groups, to):
        if to:
            rows = tuple(self.directory.rows.values())
            self._send(groups, tuple(to), Rows(self.term, self.done, None, rows))


class AnybodyLeads(Changes):
    """Two nodes lead."""

    @property
    def leads(self):
        return self.me in (self.coordinator, max(self.nodes, default=-1))


def page(order, *mixins):
    """The machine of an order, made wrong: in one of its parts, where a mixin names one."""
    right = ORDERS[order]
    whole, parts = [], {}
    for mixin in mixins:
        name = f"{getattr(mixin, 'part', '')}_part"
        if name == "_part":
            whole.append(mixin)
        else:
            base = parts.get(name, getattr(right, name))
            parts[name] = type("Wrong" + base.__name__, (mixin, base), {})
    return type("Wrong" + right.__name__, (*whole, right), parts)
