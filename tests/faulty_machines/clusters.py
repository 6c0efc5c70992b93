"""Faults in the membership of nodes: each leaves out one rule."""

from __future__ import annotations

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.membership.cluster_headers import EndView, NodeReport, PrepareView, ViewReady
from ordercast.membership.ending import Ending, Frames, NextViews
from ordercast.membership.nodes import LEAP, NodeView
from ordercast.stack.clustered import ClusteredStack


class JudgesByTheInstalledView(ClusteredStack):
    """A view that was prepared, and may be in force elsewhere, does not count in its votes."""

    def _say_ready(self) -> None:
        before = list(self.ballots)
        super()._say_ready()
        if self.prepared is not None:
            self.ballots = before


class InstallsBeforeAllAreReady(ClusteredStack):
    """As the coordinator: goes on when the first node has the union."""

    def _on_ready(self, p: ProcessId, ready: ViewReady) -> None:
        if self.ending is not None and p != self.me:
            self.ending.unready = {p}
        super()._on_ready(p, ready)


class UnfinishedEnding(Ending):
    """Takes the reports as they are."""

    def _late(self, newest: NodeReport) -> frozenset[ProcessId]:
        return frozenset()


class LetsNobodyFinish(ClusteredStack):
    """As the coordinator: those who are ready for what another has installed do not finish it."""

    def _follow(self, q: ProcessId, end: EndView) -> None:
        if q == self.me:
            assert self.ending is not None
            self.ending.__class__ = UnfinishedEnding
        super()._follow(q, end)


class CountsJoinersAtOnce(ClusteredStack):
    """As the coordinator: a view counts in votes before anybody else has it."""

    def _announce(self, view: NodeView) -> None:
        super()._announce(view)
        self.ballots = self.ballots[-1:]


class ForgetsWhatItPromised(ClusteredStack):
    """Numbers its attempts after its own view, not after the attempts that it has followed."""

    def _next_number(self) -> int:
        assert self.node_view is not None
        return self.node_view.number + (1 if self.pids[0] == self.me else LEAP)


class BelievesSuspicionsAtOnce(ClusteredStack):
    """As the coordinator: if one does not hear another, the younger of the two goes, at once."""

    def _on_suspect(self, q: ProcessId, p: ProcessId) -> None:
        if p in self.pids and q in self.pids and self.acting() == self.me != p:
            self.detector.told(max(p, q, key=self.pids.index))
            self._pursue()


class NumbersViewsAlike(ClusteredStack):
    """Two sides that go on give the same numbers to their views."""

    @property
    def stride(self) -> int:
        return 1


class UnitesOneGroup(ClusteredStack):
    """As the coordinator: sends the union of one group, and leaves the others for later."""

    def _prepare_for(
        self, p: ProcessId, ending: Ending, found: NextViews
    ) -> tuple[PrepareView, Frames]:
        first = min(found.groups, default=0)
        union = {key: kept for key, kept in found.union.items() if key[0] == first}
        return super()._prepare_for(p, ending, msgspec.structs.replace(found, union=union))
