"""The limits and delays of a node, checked against each other when the node is made."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal, Self, cast, get_args

import msgspec

from ordercast.core.durability import Durability, as_durability
from ordercast.core.ids import check_name
from ordercast.core.protocol import DeliveryLevel, Options
from ordercast.errors import ConfigError
from ordercast.membership.options import ClusterOptions
from ordercast.transport.contract import Limits
from ordercast.transport.discovery import Discovery, as_discovery
from ordercast.transport.settings import Transport, as_transport, label_of
from ordercast.views.groups import SlowPolicy

KiB = 1024
MiB = 1024 * KiB

FRAME_COST = 256  # what a frame counts in a window beside its messages
MESSAGE_COST = 8  # what a message counts beside its body, so that empty ones are bounded too

CONTROL_ROOM = 1 * MiB  # a packet may exceed a frame's messages by this: headers, member lists

CodecName = Literal["json", "msgpack"]
CODECS: tuple[CodecName, ...] = ("json", "msgpack")

DetectorName = Literal["heartbeat", "accrual"]
DETECTORS: tuple[DetectorName, ...] = ("heartbeat", "accrual")

PartitionPolicy = Literal["primary", "merge"]
PARTITION_POLICIES: tuple[PartitionPolicy, ...] = ("primary", "merge")

TraceLevel = Literal["application", "protocol"]
TRACE_LEVELS: tuple[TraceLevel, ...] = ("application", "protocol")

NOT_NUMBERS = (
    "codec", "transport", "detector", "partition", "rejoin", "discover", "resilience", "uniform",
    "sequencer", "balance", "bodies_apart",
    "site", "gateway", "voter", "voters",
)  # fmt: skip

SWITCHES = (
    "balance", "bodies_apart", "gateway", "rejoin", "sequencer", "voter",
)  # fmt: skip

MAY_BE_ZERO = ("stall_ms", "wide_batch_ms")

WITHOUT_EFFECT = {
    "blocking": "no sender blocks",
    "bodies_stay": "a group moves when its members hold all bodies",
    "constant_resends": "missing frames are asked for in a window, with a back-off",
    "max_starts": "a cluster may let in any number of nodes",
}
"""Options of former releases."""

ON_DATAGRAMS = {"retry_ms": 100, "gap_ms": 100, "fetch_batch": 16, "resend_window": 16}
"""Defaults where packets may be lost: what is missing is asked for soon, and in small portions."""


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a node beside its parameters, with their defaults.

    Sizes are bytes, delays are seconds unless the name says otherwise. `ordercast.runtime.keywords`
    says what each option means.
    """

    discover: Discovery | None = None
    sequencer: bool = False

    # delivery and durability
    codec: CodecName | None = None
    resilience: int | None = None
    uniform: bool = False

    # speed and windows
    window_bytes: int = 4 * MiB
    node_window_bytes: int = 32 * MiB
    reply_reserve: int = 4 * MiB
    frame_bytes: int = 64 * KiB
    max_batch: int = 4096
    ack_every: int = 8
    ack_delay_ms: int = 2
    status_ms: int = 2
    silence_ms: int = 20
    bodies_apart: bool = False
    balance: bool = True

    # failure detection and partitions
    heartbeat_ms: int = 250
    suspect_ms: int = 2000
    detector: DetectorName = "heartbeat"
    stall_ms: int = 10_000
    slow_seconds: float = 5.0
    partition: PartitionPolicy = "primary"
    rejoin: bool = True
    voter: bool = True
    voters: tuple[str, ...] = ()
    refound_ms: int = 5_000

    # limits and time-outs
    max_message: int = 1 * MiB
    max_nodes: int = 1024
    max_groups: int = 65_536
    max_held: int = 65_536
    max_held_bytes: int = 256 * MiB
    max_state: int = 256 * MiB
    join_timeout: float = 10.0
    close_timeout: float = 5.0
    state_timeout: float = 5.0

    # transports and lost packets
    transport: Transport = "tcp"
    retry_ms: int = 5000
    gap_ms: int = 100
    fetch_batch: int = 256
    resend_window: int = 32

    # sites
    site: str = ""
    gateway: bool = False
    wide_batch_ms: int = 10
    wide_batch_bytes: int = 64 * KiB

    @classmethod
    def given(cls, options: dict[str, Any]) -> Self:
        """These options, and the defaults that suit the transport."""
        for name, why in WITHOUT_EFFECT.items():
            if options.pop(name, None) is not None:
                warnings.warn(f"{name} has no effect any more: {why}", DeprecationWarning, 4)
        transport = as_transport(options.get("transport", "tcp"))
        defaults = {} if transport == "tcp" else ON_DATAGRAMS
        checked = {
            "transport": transport,
            "discover": as_discovery(options.get("discover")),
            "voters": _as_names("voters", options.get("voters", ())),
        }
        return cls(**{**defaults, **options, **checked})

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if name not in NOT_NUMBERS:
                _check_number(name, getattr(self, name), NodeOptions.__annotations__[name])
                if name not in MAY_BE_ZERO or getattr(self, name):
                    _check_positive(name, getattr(self, name))
        _check_choice("codec", self.codec, (*CODECS, None))
        _check_choice("detector", self.detector, DETECTORS)
        _check_choice("partition", self.partition, PARTITION_POLICIES)
        check_durability(self.resilience, self.uniform)
        for name in SWITCHES:
            _check_switch(name, getattr(self, name))
        self._check_site()
        self._check_rules()
        self.for_stack()  # what the protocols refuse is refused here

    def _check_site(self) -> None:
        if not isinstance(self.site, str):
            raise TypeError(f"site is a name, not {self.site!r}")
        if self.site:
            check_name("site", self.site)
        elif self.gateway:
            raise ConfigError(
                "gateway=True without site: name the site of the gateway, as site='tokyo'"
            )

    def _check_rules(self) -> None:
        largest = self.max_message + FRAME_COST + MESSAGE_COST
        self._at_least("window_bytes", largest, "max_message", "one message must fit the window")
        self._at_least(
            "node_window_bytes", largest, "max_message", "one message must fit the node's window"
        )
        self._at_least("reply_reserve", largest, "max_message", "one reply must fit the reserve")
        self._at_least(
            "max_held_bytes", 8 * self.window_bytes, "window_bytes",
            "a sequencer forwards the frames of several senders",
        )  # fmt: skip
        self._at_least(
            "suspect_ms", 2 * self.heartbeat_ms, "heartbeat_ms", "one heartbeat may be late"
        )
        if not isinstance(self.transport, str):
            largest = 2 * self.for_connections().max_frame
            given = self.transport.reassembly_bytes
            if given < largest:
                raise ConfigError(
                    f"reassembly_bytes={given} with max_message={self.max_message}: "
                    f"reassembly_bytes must be at least {largest}, because the pieces of two "
                    "packets must fit"
                )

    def _at_least(self, name: str, least: int, other: str, rule: str) -> None:
        value = getattr(self, name)
        if value < least:
            raise ConfigError(
                f"{name}={value} with {other}={getattr(self, other)}: {name} must be at least "
                f"{least}, because {rule}"
            )

    def for_stack(self) -> Options:
        """The options that concern the protocols; each group has a `resilience` of its own."""
        return Options(
            ack_every=self.ack_every,
            ack_delay_ms=self.ack_delay_ms,
            status_ms=self.status_ms,
            retry_ms=self.retry_ms,
            gap_ms=self.gap_ms,
            silence_ms=self.silence_ms,
            max_held=self.max_held,
            max_held_bytes=self.max_held_bytes,
            fetch_batch=self.fetch_batch,
            resend_window=self.resend_window,
            bodies_apart=self.bodies_apart,
            driver_consumes=True,
        )

    def for_cluster(self, only: Iterable[str] | None = None) -> ClusterOptions:
        """The options that concern the cluster. If `only` lists all nodes, these vote."""
        return ClusterOptions(
            heartbeat_ms=self.heartbeat_ms,
            suspect_ms=self.suspect_ms,
            detector=self.detector,
            partition=self.partition,
            balance=self.balance,
            electorate=self.voters or tuple(sorted(only or ())),
            refound_ms=self.refound_ms,
            max_groups=self.max_groups,
        )

    def may_begin(self, name: str) -> bool:
        """May the node of that name start a cluster? Only a node that votes may."""
        return self.partition == "merge" or (
            self.voter and (not self.voters or name in self.voters)
        )

    def for_connections(self) -> Limits:
        """The options that concern the connections."""
        return Limits(
            max_frame=max(self.frame_bytes, self.max_message + MESSAGE_COST) + CONTROL_ROOM,
            max_buffered=max(256 * MiB, 8 * self.window_bytes),
        )

    def shared(self) -> dict[str, object]:
        """The options that must be the same on all nodes of a cluster."""
        return {
            "max_message": self.max_message,
            "frame_bytes": self.frame_bytes,
            "codec": self.codec,
            "partition": self.partition,
            "transport": label_of(self.transport),
        }


def check_durability(resilience: object, uniform: object) -> Durability:
    """Both options as one number; raises if they are wrong."""
    if resilience is not None:
        _check_number("resilience", resilience, "int")
    if not isinstance(uniform, bool):
        raise TypeError(f"uniform is True or False, not {uniform!r}")
    assert resilience is None or isinstance(resilience, int)
    return as_durability(resilience, uniform=uniform)


def check_level(level: object) -> DeliveryLevel | None:
    """The level, or None; raises if there is no such level."""
    _check_choice("delivery_level", level, (*get_args(DeliveryLevel), None))
    return cast(DeliveryLevel | None, level)


def check_slow(slow: object) -> SlowPolicy | None:
    """The policy, or None; raises if there is no such policy."""
    _check_choice("slow", slow, (*get_args(SlowPolicy), None))
    return cast(SlowPolicy | None, slow)


def _as_names(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is a list of names like ['alice', 'bob'], not {value!r}")
    return tuple(check_name("node", one) for one in value)


def _check_choice(name: str, value: object, choices: tuple[str | None, ...]) -> None:
    if value not in choices:
        *most, last = map(repr, choices)
        raise ValueError(f"{name}={value!r} is unknown; use {', '.join(most)} or {last}")


def _check_switch(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")


def _check_number(name: str, value: object, annotation: str) -> None:
    wanted = (int, float) if annotation == "float" else int
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise TypeError(f"{name} is a number, not {value!r}")


def _check_positive(name: str, value: float) -> None:
    if not value > 0:  # also refuses nan
        raise ValueError(f"{name}={value} must be positive")
