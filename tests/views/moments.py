"""Nodes as they stand at some moment of a simulated run: copies, which a test may put wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.membership.agreement_table import Standing
from ordercast.process.process import Process
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.seat import Stay
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.simulation.clustered import Boot, ClusterConfig, simulate_cluster
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.faults import Crash, Join
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.workload import Workload
from ordercast.views.changes import Lead


def service_of(node: Process) -> SequencingService | None:
    """The sequencing service of a node."""
    machines = node.groups.machines.values()
    return next((m for m in machines if isinstance(m, SequencingService)), None)


def _of_service(look: Callable[[SequencingService], bool]) -> Callable[[Process], bool]:
    def looks(node: Process) -> bool:
        service = service_of(node)
        return service is not None and look(service)

    return looks


def _leads(lead: Lead) -> Callable[[Process], bool]:
    return lambda node: node.changes.lead is lead and bool(node.groups.machines)


def _is_calm(node: Process) -> bool:
    changes, agreement = node.changes, node.agreement
    stands = agreement.standing is Standing.IN and len(agreement.pids) > 3
    changing = changes.lead is not Lead.IDLE or changes.prepared is not None
    here = node.me in (0, 1, 2) and all(g in node.groups.machines for g in (1, 2) if node.me != 0)
    return stands and not changing and here and len(changes.directory.rows) > 2


def _numbers(service: SequencingService) -> bool:
    return any(
        book.stable + 1 < book.N and book.stable > book.base and len(book.members) > 2
        for book in service.sequencer.books.values()
    )


def _queues(service: SequencingService) -> bool:
    return any(
        seat.stay is Stay.IN and len(seat.queue) > 1 and seat.stable > seat.base + 1
        and len(seat.kept) > 1 and g not in service.sequencer.books
        for g, seat in service.member.seats.items()
    )  # fmt: skip


def _joins(service: SequencingService) -> bool:
    return any(seat.stay is Stay.JOINING for seat in service.member.seats.values())


def _sends(service: SequencingService) -> bool:
    outbox = service.sender.outbox
    return bool(outbox.under_way) and len(outbox.unsent) > 1


MOMENTS: dict[str, tuple[str, Callable[[Process], bool]]] = {  # (protocol, what is looked for)
    "coordinator": ("cbcast", lambda node: _is_calm(node) and node.changes.leads),
    "member": ("cbcast", lambda node: _is_calm(node) and not node.changes.leads),
    "tries": (
        "cbcast",
        lambda node: (
            node.agreement.standing is Standing.IN
            and node.agreement.proposer.attempt is not None
            and node.agreement.proposer.attempt.ballot.n > 0
            and node.agreement.proposer.attempt.proposal is not None
        ),
    ),
    "asks": ("cbcast", _leads(Lead.ASKING)),
    "prepares": ("cbcast", _leads(Lead.PREPARING)),
    "installs": ("cbcast", _leads(Lead.INSTALLING)),
    "stopped": (
        "cbcast", lambda node: any(flush.is_stopped for flush in node.groups.flushes.values()),
    ),
    "places": (
        "sequencing_hybrid",
        lambda node: _is_calm(node) and node.changes.leads and bool(node.changes.target.placements),
    ),
    "numbers": ("sequencing_hybrid", _of_service(_numbers)),
    "queues": ("sequencing_hybrid", _of_service(_queues)),
    "joins": ("sequencing_hybrid", _of_service(_joins)),
    "sends": ("sequencing_hybrid", _of_service(_sends)),
}  # fmt: skip


class _Watched(Process):
    """Copies itself when it stands as somebody looks for."""

    wanted: dict[str, Callable[[Process], bool]]
    found: dict[str, Process]

    def step(self, events: Iterable[Any]) -> Output:
        out = super().step(events)
        for name in [name for name, look in self.wanted.items() if look(self)]:
            del self.wanted[name]
            self.found[name] = self.copy()
        return out


@cache
def _run(protocol: str) -> dict[str, Process]:
    looks = {name: look for name, (of, look) in MOMENTS.items() if of == protocol}

    class Watched(_Watched):
        wanted = looks
        found: dict[str, Process] = {}  # noqa: RUF012

    config = ClusterConfig(
        protocol=PROTOCOLS[protocol],
        process=Watched,
        hosts=5,
        groups=(
            GroupConfig(members=(0, 1, 2, 3)), GroupConfig(members=(1, 2, 3)),
            GroupConfig(members=(0, 3)),
        ),
        late=(4,),
        messages=60,
        workload=Workload(every_us=2_000, burst=3, start_ms=300.0),
        network=NetworkModel(fifo=True),
        faults=(Boot(4, at_ms=350.0), Join(4, 1, at_ms=380.0), Crash(0, at_ms=500.0)),
        options=Options(ack_every=4, ack_delay_ms=10),
        seed=3,
    )  # fmt: skip
    simulate_cluster(config)
    assert not looks, f"no node of the run ever stands so: {sorted(looks)}"
    return Watched.found


def node_that(moment: str) -> Process:
    """A copy of its own."""
    protocol, _ = MOMENTS[moment]
    return _run(protocol)[moment].copy()
