"""Faults in a node: each leaves out one rule, of node views or of changes of groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ordercast.core.changing import End, FramesEnd
from ordercast.core.events import Kept, Multicast, Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import ViewNumbers
from ordercast.core.protocol import OrderingProtocol
from ordercast.membership.acceptor import Acceptor
from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_headers import EndView, Suspect
from ordercast.membership.agreement_part import Cluster
from ordercast.membership.attempt import Attempt
from ordercast.membership.node_view import NodeEntry, NodeView
from ordercast.membership.proposer import Proposer
from ordercast.membership.reconfiguration import Reconfiguration
from ordercast.membership.suspicions import Suspicions
from ordercast.process.process import Process
from ordercast.views.changes import Changes, Groups
from ordercast.views.flush import FrameFlush
from ordercast.views.headers import Change

# -- node views -----------------------------------------------------------------------------------


class AcceptorThatForgets(Acceptor):
    """Reports no proposal that it has accepted."""

    def on_end(self, cluster: Cluster, src: ProcessId, end: EndView) -> None:
        self.accepted = None
        super().on_end(cluster, src, end)


class ForgetsWhatItAccepted(Agreement):
    acceptor_part = AcceptorThatForgets

    def invariants(self) -> None:
        """None that it would keep."""


class DecidesWithoutAMajority(Reconfiguration):
    def may_recover(self) -> bool:
        return True


class ProposerThatDecidesAlone(Proposer):
    def _is_decided(self, attempt: Attempt, proposal: NodeView) -> bool:
        return self.own.me in attempt.accepted_by


class DecidesAlone(Agreement):
    """As the one that leads: its own word is enough."""

    reconfiguration_part = DecidesWithoutAMajority
    proposer_part = ProposerThatDecidesAlone

    def _look_whether_cut_off(self, cluster: Cluster) -> None:
        return

    def invariants(self) -> None:
        """None that it would keep."""


class SuspicionsBelievedAtOnce(Suspicions):
    def on_suspect(self, cluster: Cluster, src: ProcessId, suspect: Suspect) -> None:
        own = self.own
        if suspect.pid in own.pids and own.leads and suspect.pid != own.me:
            own.detector.told(max(suspect.pid, src, key=own.pids.index))
            own.act(cluster)


class BelievesSuspicionsAtOnce(Agreement):
    """As the one that leads: if one does not hear another, the younger of the two goes, at once."""

    suspicions_part = SuspicionsBelievedAtOnce


# -- changes --------------------------------------------------------------------------------------


class InstallsBeforeAllAreReady(Changes):
    """As the coordinator: goes on when it is ready itself."""

    def _plan(self, groups: Groups, change: Change) -> None:
        super()._plan(groups, change)
        self.now.unready = {self.me}


class CallsNoWitnesses(Changes):
    """As the coordinator: only those who are in the groups take part in a change."""

    def begin_view(self, groups: Groups, view: NodeView, excluded: Iterable[NodeEntry]) -> None:
        self.votes = False
        super().begin_view(groups, view, excluded)


class FinishesNothing(Changes):
    """As the coordinator: what all are ready for, and one that died may have shown, is void."""

    def _prepared_by_all(self) -> Change | None:
        return None


class FinishesWhatOthersGaveUp(Changes):
    """As the coordinator of a side of its own: what it is ready for is installed."""

    def _prepared_by_all(self) -> Change | None:
        votes, self.votes = self.votes, True
        try:
            return super()._prepared_by_all()
        finally:
            self.votes = votes


class UnitesOneGroup(FrameFlush):
    """Brings what is held of one group, and leaves the others as they are."""

    def _union(self, g: GroupId, end: End) -> tuple[Kept, ...]:
        assert isinstance(end, FramesEnd)
        first = min(self.protocol.member_of, default=g)
        return super()._union(g, end if g == first else msgspec.structs.replace(end, frames=()))


# -- nodes ----------------------------------------------------------------------------------------


class WithAgreement(Process):
    """A node with another agreement."""

    agreement_kind: type[Agreement] = Agreement

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.agreement = self.agreement_kind(self.agreement.node, self.agreement.options)


class NodeThatForgetsWhatItAccepted(WithAgreement):
    agreement_kind = ForgetsWhatItAccepted


class NodeThatDecidesAlone(WithAgreement):
    agreement_kind = DecidesAlone


class NodeThatBelievesSuspicions(WithAgreement):
    agreement_kind = BelievesSuspicionsAtOnce


class NodeThatInstallsTooEarly(Process):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.changes.__class__ = InstallsBeforeAllAreReady


class NodeThatCallsNoWitnesses(Process):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.changes.__class__ = CallsNoWitnesses


class NodeThatFinishesNothing(Process):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.changes.__class__ = FinishesNothing


class NodeThatFinishesWhatOthersGaveUp(Process):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.changes.__class__ = FinishesWhatOthersGaveUp


class NodeThatNumbersViewsAlike(Process):
    """Two sides that go on give the same numbers to their views."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.changes.target.numbers = ViewNumbers()


class NodeThatTakesWhatComesAfterItsReport(Process):
    """Delivers a last packet of a dead node that came to it alone."""

    @staticmethod
    def _is_of_an_ending_era(machine: OrderingProtocol, packet: Receive) -> bool:
        return False


class NodeThatSpeaksAfterItsReport(Process):
    """Goes on sending in the old view after it has reported what it holds."""

    def _multicast(self, multicast: Multicast) -> None:
        machine = self.groups.machines.get(multicast.group)
        if machine is not None and self.blocked is None:
            machine.handle(multicast)


class NodeThatUnitesOneGroup(Process):
    def step(self, events: Any) -> Any:
        out = super().step(events)
        for flush in self.groups.flushes.values():
            flush.__class__ = UnitesOneGroup
        return out
