"""What to simulate. All that a run depends on stands here: the same config, the same trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from ordercast.core.durability import Durability, as_durability
from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import DeliveryLevel, Options, OrderingProtocol
from ordercast.errors import ConfigError
from ordercast.protocols.registry import choose
from ordercast.simulation.costs import CostModel
from ordercast.simulation.delays import Delay, Uniform
from ordercast.simulation.faults import Crash, Fault, FlushTo, Join, Leave, Partition, Visit
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.workload import Workload

NamedProtocol = str | type[OrderingProtocol]


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A group at the start of the run. Groups are numbered from 1 in the order of the config."""

    members: tuple[ProcessId, ...]
    leader: ProcessId | None = None  # None: the first member; it need not be a member
    guests: tuple[ProcessId, ...] = ()  # send to the group, get nothing; where its protocol is open
    protocol: NamedProtocol | None = None  # None: that of the config
    resilience: int | None = None  # in a cluster; None: what its options say
    uniform: bool = False  # in a cluster
    delivery_level: DeliveryLevel | None = None  # in a cluster; None: what its options say

    @property
    def durability(self) -> Durability:
        """What the group asks for by itself."""
        return as_durability(self.resilience, uniform=self.uniform)


class SimulationConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `members` are processes 0 to members - 1; times are simulated."""

    protocol: NamedProtocol
    members: int = 5
    groups: tuple[GroupConfig, ...] = ()  # none: one static group of all
    messages: int = 100  # started by the workload; answers come on top
    workload: Workload = Workload()
    loss: float = 0.0
    duplicate: float = 0.0
    delay: Delay = Uniform(500, 1500)
    fifo: bool = False
    broadcast: bool = False  # a packet is sent once for all its receivers
    transform: Callable[[Receive], Receive] | None = None  # of every packet, e.g. a codec
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    options: Options = Options()
    window: int | None = None  # own messages to a group not yet delivered by all; None: any
    sites: tuple[str, ...] = ()  # where each process is, for protocols with subgroups
    consume_ms: float | None = None  # applications take what is delivered after this; None: at once
    slow_consumers: tuple[tuple[ProcessId, float], ...] = ()  # (process, its consume_ms)
    trace: Literal["application", "protocol"] = "application"
    checks: bool = True  # invariants are looked at after every step
    costs: CostModel | None = None  # what work costs each process; None: it takes no time
    limit_ms: float = 600_000.0
    limit_events: int = 50_000_000
    quiet_ms: float = 60_000.0  # stop when no application said or got anything for so long

    def __post_init__(self) -> None:
        _check_positive(self, "members", "limit_ms", "limit_events", "quiet_ms")
        if self.messages < 0:
            raise ValueError(f"messages={self.messages} must not be negative")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window={self.window} must be at least 1, or None for no limit")
        if self.consume_ms is not None and self.consume_ms <= 0:
            raise ValueError(f"consume_ms={self.consume_ms} must be greater than 0, or None")
        if self.trace not in ("application", "protocol"):
            raise ValueError(f"trace={self.trace!r} must be 'application' or 'protocol'")
        self._check_slow_consumers()
        if self.options.driver_consumes and self.consume_ms is None:
            raise ConfigError(
                "options.driver_consumes=True and consume_ms=None: credit would never be given; "
                "set consume_ms"
            )
        if len(self.sites) not in (0, self.members):
            raise ConfigError(
                f"sites names {len(self.sites)} places, but members={self.members}: "
                "say where each process is, or of none"
            )
        self.network  # noqa: B018  a wrong loss or duplicate is refused now
        for g, group in self.group_list():
            _check_group(g, group, self.members)
            _check_guests(g, group, self.protocol_of(group))
        self._check_changes()
        for p in self.workload.senders or ():
            _check_process("workload.senders", p, self.members)
        for fault in self.faults:
            self._check_fault(fault)

    @property
    def network(self) -> NetworkModel:
        """What carries the packets."""
        return NetworkModel(
            loss=self.loss,
            duplicate=self.duplicate,
            delay=self.delay,
            fifo=self.fifo,
            broadcast=self.broadcast,
            transform=self.transform,
        )

    def group_list(self) -> list[tuple[GroupId, GroupConfig]]:
        """The groups with their numbers."""
        groups = self.groups or (GroupConfig(members=tuple(range(self.members))),)
        return list(enumerate(groups, start=1))

    def protocol_of(self, group: GroupConfig) -> type[OrderingProtocol]:
        """The class of a group's protocol; a ValueError lists the names that are built."""
        protocol = self.protocol if group.protocol is None else group.protocol
        return choose(None, protocol) if isinstance(protocol, str) else protocol

    def groups_of(self) -> dict[ProcessId, tuple[GroupId, ...]]:
        """The groups each process sends to."""
        found: dict[ProcessId, list[GroupId]] = {p: [] for p in range(self.members)}
        for g, group in self.group_list():
            for p in (*group.members, *group.guests):
                found[p].append(g)
        return {p: tuple(groups) for p, groups in found.items()}

    def _check_slow_consumers(self) -> None:
        if self.slow_consumers and self.consume_ms is None:
            raise ConfigError(
                "slow_consumers and consume_ms=None: the others would consume nothing; "
                "set consume_ms"
            )
        for p, ms in self.slow_consumers:
            _check_process("slow_consumers", p, self.members)
            if ms <= 0:
                raise ValueError(f"slow_consumers: {ms} ms of process {p} must be greater than 0")

    def _check_changes(self) -> None:
        """Groups of several sequencers change as the nodes of a cluster agree."""
        flushed = {fault.group for fault in self.faults if isinstance(fault, FlushTo)}
        for g, group in self.group_list():
            protocol = self.protocol_of(group)
            if protocol.together is not None and g in flushed:
                raise ConfigError(
                    f"views of group {g} change, and its protocol is "
                    f"{protocol.declaration.name!r}: its groups change as the nodes of a cluster "
                    "agree; simulate it as a cluster (ordercast.simulation.clustered)"
                )

    def _check_fault(self, fault: Fault) -> None:
        if fault.at_ms < 0:
            raise ValueError(f"{fault}: at_ms={fault.at_ms} must not be negative")
        groups = dict(self.group_list())
        if isinstance(fault, Join | Visit | Leave):
            raise ConfigError(
                f"{fault}: the members of a given group do not come and go; simulate a cluster "
                "(ordercast.simulation.clustered)"
            )
        if isinstance(fault, FlushTo) and fault.group not in groups:
            raise ValueError(f"{fault}: group {fault.group} is none of 1 to {len(groups)}")
        for p in _processes_of(fault):
            _check_process(f"{type(fault).__name__} at {fault.at_ms:g} ms", p, self.members)
        if isinstance(fault, Crash) and not 0 <= fault.lose <= 1:
            raise ValueError(f"{fault}: lose={fault.lose} is no probability")
        if isinstance(fault, FlushTo) and not fault.members:
            raise ValueError(f"{fault}: a view needs at least one member")


def overlapping_groups(
    members: int,
    groups: int,
    size: int,
    *,
    leader: ProcessId | None = None,
) -> tuple[GroupConfig, ...]:
    """`groups` groups of `size` neighbours each, spread round a ring of processes."""
    if members < 1:
        raise ValueError(f"members={members} must be at least 1")
    if not 1 <= size <= members:
        raise ConfigError(f"size={size} and members={members}: a group needs 1 <= size <= members")
    if groups < 1:
        raise ValueError(f"groups={groups} must be at least 1")
    firsts = [g * members // groups for g in range(groups)]
    return tuple(
        GroupConfig(members=tuple((first + i) % members for i in range(size)), leader=leader)
        for first in firsts
    )


def even_sites(members: int, sites: int) -> tuple[str, ...]:
    """Where each process is, if they lie at so many sites, equally many at each; 0: nowhere."""
    if not 0 <= sites <= members:
        raise ConfigError(f"sites={sites} and members={members}: a site needs a process")
    return tuple(f"site {p * sites // members + 1}" for p in range(members)) if sites else ()


def _processes_of(fault: Fault) -> tuple[ProcessId, ...]:
    if isinstance(fault, Crash):
        return (fault.process,)
    if isinstance(fault, Partition):
        return tuple(p for side in fault.sides for p in side)
    if isinstance(fault, FlushTo):
        return fault.members if fault.leader is None else (*fault.members, fault.leader)
    return ()


def _check_group(g: GroupId, group: GroupConfig, members: int) -> None:
    if not group.members:
        raise ValueError(f"group {g} has no members")
    if len(set(group.members)) != len(group.members):
        raise ValueError(f"group {g} names a member twice: {group.members}")
    for p in (*group.members, *group.guests, *(() if group.leader is None else (group.leader,))):
        _check_process(f"group {g}", p, members)
    if group.durability is not None or group.delivery_level is not None:
        raise ConfigError(
            f"group {g} has a resilience or a delivery level of its own: only groups of a cluster "
            "do; give them to all groups, by options=Options(...)"
        )


def _check_guests(g: GroupId, group: GroupConfig, protocol: type[OrderingProtocol]) -> None:
    if not group.guests:
        return
    _check_open(g, protocol)
    for p in group.guests:
        if group.guests.count(p) + group.members.count(p) > 1:
            raise ConfigError(f"group {g} names guest {p} twice, or as a member too")


def _check_open(g: GroupId, protocol: type[OrderingProtocol]) -> None:
    declared = protocol.declaration
    if declared.closed:
        raise ConfigError(
            f"group {g} cannot have guests: {declared.name!r} is for closed groups only, as "
            f"{declared.closed}"
        )


def _check_process(where: str, p: ProcessId, members: int) -> None:
    if not 0 <= p < members:
        raise ConfigError(
            f"{where} names process {p}, but members={members}: processes are 0 to {members - 1}"
        )


def _check_positive(config: SimulationConfig, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if not value > 0:
            raise ValueError(f"{name}={value} must be greater than 0")
