"""What a node wants of groups: it asks the coordinator again and again until it is so."""

from __future__ import annotations

from ordercast.core.ids import ProcessId
from ordercast.membership.arrivals import GATHER_TICKS, Arrivals
from ordercast.membership.cluster_headers import (
    Unwant,
    Want,
)


class Wishes(Arrivals):
    """A group changes alone when somebody joins or leaves it."""

    def _press(self, wish: Want | Unwant) -> None:
        """Ask the coordinator, which may be this node."""
        if not self.pids or self.stopped:
            return
        if self.coordinates:
            self._on_wish(self.me, wish)
        else:
            self._tell((self.pids[0],), wish)

    def repeat_wishes(self) -> None:
        for gid, quits in tuple(self.unwants.items()):
            if self.is_out(gid):
                self.unwants.pop(gid, None)
            else:
                self._press(Unwant(gid, quits))
        for gid, want in tuple(self.wants.items()):
            if gid in self.unwants:
                continue  # first out, then in again
            if self.is_in(want):
                del self.wants[gid]
            else:
                self._press(want)
        if self.going:
            self._say_goodbye()

    def _on_wish(self, q: ProcessId, wish: Want | Unwant) -> None:
        said_by_coordinator = q != self.me and self.pids[:1] == (q,)
        if isinstance(wish, Unwant) and said_by_coordinator:
            self._hear_outside(wish)
        if not self.coordinates or q not in self.pids:
            return
        if isinstance(wish, Unwant):
            self.change_group(None, wish.gid, left=(q,))
            if self.never_let_in(wish.gid, q):
                self._confirm_outside(q, wish)
            return
        self._check_group(wish.group, (q,) if wish.part == "guest" else ())
        self.top_group = max(self.top_group, wish.group.gid)
        if wish.former:
            self.wanted.setdefault((wish.group.gid, q), (wish, self.ticks))
            self._admit_wanted()
        elif wish.part == "member":
            self.change_group(wish, wish.group.gid, joined=(q,))
        else:
            self.change_group(wish, wish.group.gid, guests=(q,))

    def _hear_outside(self, wish: Unwant) -> None:
        if self.unwants.get(wish.gid) == wish.quits:
            self.give_up(wish.gid)

    def _confirm_outside(self, q: ProcessId, wish: Unwant) -> None:
        """It may forget the group: until it is let in or knows better, others wait with it."""
        if q == self.me:
            self.give_up(wish.gid)
        else:
            self._tell((q,), wish)

    def _admit_wanted(self) -> None:
        """Those who come back with a side come into a group together."""
        names = {} if self.node_view is None else {n.pid: n.name for n in self.node_view.nodes}
        for gid in dict.fromkeys(gid for gid, _ in self.wanted):
            asking = {q: ask for (g, q), ask in self.wanted.items() if g == gid}
            here = {names[q] for q in asking if q in names}
            patient = any(self.ticks - since >= GATHER_TICKS for _, since in asking.values())
            if patient or all(here.issuperset(want.former) for want, _ in asking.values()):
                for q in asking:
                    del self.wanted[gid, q]
                joined = tuple(sorted(q for q in asking if q in names))
                self.change_group(next(iter(asking.values()))[0], gid, joined=joined)
