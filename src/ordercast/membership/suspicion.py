"""What follows when a node is suspected."""

from __future__ import annotations

from ordercast.core.ids import ProcessId
from ordercast.membership.cluster_headers import (
    Stuck,
    Suspect,
)
from ordercast.membership.standing import Blocked
from ordercast.membership.view_end import ViewEnd

PATIENCE = 3  # timeouts that an attempt may take; a node that is silent is suspected before
HEARD_LATELY = 2  # ticks


class Suspicion(ViewEnd):
    """The first node that is not suspected ends the view; the others tell it what they see."""

    def _alive(self) -> tuple[ProcessId, ...]:
        return tuple(p for p in self.pids if p not in self.detector.suspected)

    def _pursue(self) -> None:
        """End the view if that is this node's task; else tell whose it is."""
        if self.node_view is None or self.out_of_it or self.retired:
            return
        acting = self.acting()
        suspected = [p for p in self.pids if p in self.detector.suspected]
        if acting == self.me:
            if suspected or self.stopped:
                self._try(self._alive())
            return
        for p in suspected:
            self._tell((acting,), Suspect(p))
        if self.stopped_for > PATIENCE * self.cluster_options.timeout_ticks:
            self._tell((acting,), Stuck())

    def _try(self, nodes: tuple[ProcessId, ...]) -> None:
        if self.blocked is not None and self.refused == nodes:
            return  # they were too few, and still are
        if self.ending is None or self.ending.nodes != nodes:
            self._end_view(nodes)

    def _on_suspect(self, q: ProcessId, p: ProcessId) -> None:
        """q does not hear p. If p is heard here, one of the two must go, in the end: the younger.

        At once would be wrong: p may have died a moment ago, and q is only the first to say so.
        """
        if p == self.me or p not in self.pids or q not in self.pids or self.acting() != self.me:
            return
        if p in self.detector.suspected or self.blocked is not None:  # each one counts now
            return
        if self.detector.silent_for(p) > HEARD_LATELY:
            self.detector.told(p)
        else:
            count = self.complaints[q, p] = self.complaints.get((q, p), 0) + 1
            if count <= self.cluster_options.timeout_ticks:
                return
            self.detector.told(max(p, q, key=self.pids.index))
        self._pursue()

    def count_unanswered(self) -> None:
        """Whoever should end the view does not know of us, or is too few without a word: then we
        are cut off, too, and the application must know."""
        suspected = tuple(p for p in self.pids if p in self.detector.suspected)
        waits = bool(suspected) and not self.stopped and self.acting() != self.me
        self.unanswered_for = self.unanswered_for + 1 if waits and not self.retired else 0
        late = self.unanswered_for > PATIENCE * self.cluster_options.timeout_ticks
        if late and self.cluster_options.partition == "primary":
            assert self.node_view is not None
            self.stopped = True
            self.stop_groups()
            self.blocked = Blocked(self.node_view.number, suspected)
            self.effects.news.append(self.blocked)

    def _on_stuck(self, q: ProcessId) -> None:
        if q not in self.pids or self.acting() != self.me or self.ending is not None:
            return
        if self.ticks >= self.unstick_at:
            self.unstick_at = self.ticks + self.cluster_options.timeout_ticks
            self.refused = ()
            self._try(self._alive())
