"""Every keyword of `Node`, `Node.join` and `LocalCluster`: its type, its meaning in one sentence,
and its subject.

This is the only place that says what an option means: type checkers and editors read the classes,
docs/API.md and `--help` are made from the sentences (`meanings`). The defaults are in
`ordercast.runtime.options`, which also checks the values.

    Place, Access, Recording     parameters of `Node`
    Tuning                       what `Node` takes beside these, and hands to `NodeOptions`
    SharedKeywords               all without `Place`: what several nodes, as those of a
                                 `LocalCluster`, may be given alike
    NodeKeywords                 all
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, TypedDict, get_type_hints

from ordercast.core.protocol import DeliveryLevel
from ordercast.runtime.options import (
    WITHOUT_EFFECT,
    CodecName,
    DetectorName,
    PartitionPolicy,
    TraceLevel,
)
from ordercast.runtime.state import State
from ordercast.transport.discovery import Discovery
from ordercast.transport.settings import IpMulticast, Udp
from ordercast.transport.tls import Tls
from ordercast.views.groups import SlowPolicy

# -- who and where --------------------------------------------------------------------------------


class Place(TypedDict, total=False):
    """Where a node is, and how it finds the others."""

    bind: Annotated[
        str | None,
        "The node listens at this `host:port`. "
        "Without it, the node listens on this machine only, at a free port.",
    ]
    advertise: Annotated[
        str | None,
        "Other nodes connect to this `host:port` instead of the one where the node listens: "
        "behind NAT, or in a container.",
    ]
    bootstrap: Annotated[
        bool,
        "The node starts the cluster if none of the `seeds` or `members` is running. "
        "A node that does not vote waits for them instead.",
    ]
    seeds: Annotated[
        Iterable[str],
        "Addresses of other nodes that the node asks for the cluster. One running node is enough.",
    ]
    members: Annotated[
        Mapping[str, str] | Iterable[str] | None,
        "Names and addresses of all nodes, the same at every node. "
        "The first of them starts the cluster.",
    ]
    discover: Annotated[
        Discovery | None,
        "The node finds its cluster by multicast, and is found by others: `Discovery(...)`.",
    ]
    sequencer: Annotated[
        bool,
        "The node also numbers messages of groups that it is not in, as the daemon `ordercast "
        "sequencer` does.",
    ]


class Access(TypedDict, total=False):
    """Which cluster the node joins, and which nodes are let in."""

    cluster: Annotated[str, "Name of the cluster. Nodes of another cluster are refused."]
    tls: Annotated[
        Tls | None,
        "`Tls(...)` encrypts all connections. "
        "Without it, the node does not talk to other machines, unless `insecure` allows it.",
    ]
    key: Annotated[
        bytes | str | None, "Secret of the cluster. A node that does not have it is not let in."
    ]
    insecure: Annotated[bool, "Connections to other machines may go without TLS, in plain text."]


# -- how it works ---------------------------------------------------------------------------------


class Delivery(TypedDict, total=False):
    """Delivery and durability."""

    codec: Annotated[
        CodecName | None,
        'With "json" or "msgpack", a body may be any value; with None, it is `bytes`. '
        "The same at all nodes.",
    ]
    resilience: Annotated[
        int | None,
        "A delivered message survives this many crashes. With None, this is left to the protocol.",
    ]
    uniform: Annotated[bool, "A delivered message survives crashes of any minority of its group."]


class Speed(TypedDict, total=False):
    """Speed and windows."""

    window_bytes: Annotated[
        int,
        "A sender waits while members have yet to consume this many bytes that it sent to the "
        "group.",
    ]
    node_window_bytes: Annotated[
        int,
        "A sender waits while members have yet to consume this many bytes that its node sent, in "
        "all groups together.",
    ]
    reply_reserve: Annotated[
        int,
        "Multicasts from the loop that reads the stream do not wait. "
        "They may exceed a window by this many bytes.",
    ]
    frame_bytes: Annotated[
        int,
        "Small messages to one group share a frame, which is closed at this size. "
        "The same at all nodes.",
    ]
    max_batch: Annotated[int, "`batches()` yields lists of at most this many events."]
    ack_every: Annotated[
        int, "A member sends an acknowledgement when it has consumed this many frames."
    ]
    ack_delay_ms: Annotated[
        int,
        "A member sends an acknowledgement at the latest this long after it has consumed a frame.",
    ]
    status_ms: Annotated[int, "Progress marks are sent after this delay if no packet carries them."]
    silence_ms: Annotated[
        int,
        "When the others wait for a member to speak, as some protocols do, it sends an empty "
        "packet after this delay.",
    ]
    bodies_apart: Annotated[
        bool,
        "Members send message bodies directly to each other, and sequencers send only the numbers.",
    ]
    balance: Annotated[bool, "Groups move by themselves to the sequencer that suits them best."]


class Detection(TypedDict, total=False):
    """Failure detection and partitions."""

    heartbeat_ms: Annotated[int, "Interval between heartbeats."]
    suspect_ms: Annotated[int, "A node that has been silent for this long is suspected to be dead."]
    detector: Annotated[
        DetectorName,
        'With "heartbeat", a node is suspected after `suspect_ms`; with "accrual", this time '
        "adapts to the pauses that were observed.",
    ]
    stall_ms: Annotated[
        int,
        "While the event loop is blocked, a thread sends pulses, as signs of life, for at most "
        "this long. With 0, there is no such thread.",
    ]
    slow_seconds: Annotated[
        float,
        "A program that reads nothing for this long is reported as slow, or excluded from groups "
        'with `slow="exclude"`.',
    ]
    partition: Annotated[
        PartitionPolicy,
        'When the cluster splits: with "primary", only the majority goes on; with "merge", every '
        "side does. The same at all nodes.",
    ]
    rejoin: Annotated[bool, "A node that was excluded or cut off comes back by itself."]
    voter: Annotated[
        bool, "The node may vote on who is in the cluster. Use False for workers that come and go."
    ]
    voters: Annotated[
        Iterable[str],
        "Names of all nodes that may vote. If there are none, up to five of the oldest nodes vote.",
    ]
    refound_ms: Annotated[
        int,
        "A group whose members have all gone waits this long for one of them that may have newer "
        "state; 24 times as long if a node that asks to join remembers an older state.",
    ]


class Limits(TypedDict, total=False):
    """Limits and time-outs."""

    max_message: Annotated[int, "Size of the largest body. The same at all nodes."]
    max_nodes: Annotated[int, "Number of nodes that the cluster may have at a time."]
    max_groups: Annotated[int, "Number of groups that the cluster may have at a time."]
    max_held: Annotated[
        int,
        "Number of frames of a group that may be held back, or kept for a view that has not begun.",
    ]
    max_held_bytes: Annotated[
        int, "Number of bytes sent by one other node that may be held back, in all groups together."
    ]
    max_state: Annotated[
        int,
        "Size of the largest state that a member gives to a newcomer, and that a newcomer takes.",
    ]
    join_timeout: Annotated[
        float,
        "Joining fails if the cluster is not found, or the first view of a group has not come, "
        "after this time.",
    ]
    close_timeout: Annotated[
        float, "`aclose()` and `leave()` take at most this long to finish what is under way."
    ]
    state_timeout: Annotated[
        float,
        "A newcomer turns to another member if it has received nothing of the state for this long.",
    ]


class Transports(TypedDict, total=False):
    """Transports and lost packets."""

    transport: Annotated[
        Literal["tcp", "udp"] | Udp | IpMulticast,
        'Messages travel over "tcp", "udp", `Udp(...)` or `IpMulticast(...)`. '
        "The same kind at all nodes.",
    ]
    retry_ms: Annotated[int, "A request that has no answer is repeated after this delay."]
    gap_ms: Annotated[int, "After this delay, a node asks for a frame that is missing."]
    fetch_batch: Annotated[int, "Number of missing frames that one request may ask for."]
    resend_window: Annotated[
        int, "Number of missing frames that a member of a `javagroups` group asks for at a time."
    ]


class Sites(TypedDict, total=False):
    """Sites."""

    site: Annotated[
        str,
        'Name of the site where the node is, such as "tokyo". '
        'Groups with `protocol="two_layered"` use it.',
    ]
    gateway: Annotated[
        bool, "The node offers to be the gateway of its site, which speaks with the other sites."
    ]
    wide_batch_ms: Annotated[
        int,
        "A gateway collects packets for another site for at most this long. "
        "With 0, it sends each at once.",
    ]
    wide_batch_bytes: Annotated[
        int,
        "A gateway sends the packets that it has collected for another site when they have this "
        "many bytes.",
    ]


class Recording(TypedDict, total=False):
    """Recording."""

    trace: Annotated[
        str | Path | None,
        "Directory to which the node records what happens, for `ordercast verify`.",
    ]
    trace_level: Annotated[
        TraceLevel,
        '"application" records what programs send and get; "protocol" also records packets, and '
        "why messages wait.",
    ]
    run: Annotated[
        str | None,
        "Name of the run in the trace. Without it, the node uses the run name of its cluster.",
    ]


# -- who takes which ------------------------------------------------------------------------------


class Tuning(Delivery, Speed, Detection, Limits, Transports, Sites, total=False):
    """What `Node` takes beside its parameters."""


class SharedKeywords(Access, Recording, Tuning, total=False):
    """What several nodes may share, for a dict of it: `limits: SharedKeywords = {"max_batch": 99}`.

    Without `Place`, so that each node can be given a place of its own beside it.
    """


class NodeKeywords(Place, SharedKeywords, total=False):
    """Every keyword of `Node`."""


class JoinKeywords(TypedDict, total=False):
    """Every keyword of `Node.join` beside the group."""

    order: str | None
    protocol: str | None
    scope: str | None
    state: State | None
    resilience: int | None
    uniform: bool
    delivery_level: DeliveryLevel | None
    slow: SlowPolicy | None


class ClusterKeywords(SharedKeywords, total=False):
    """Every keyword of `LocalCluster` beside `in_process`."""

    sequencer: bool
    sequencers: int
    names: Sequence[str]
    order: str | None
    protocol: str | None
    group: str
    consume: bool


def meanings(owner: type) -> dict[str, str]:
    """The sentence of every annotation `Annotated[type, "sentence"]` of this class, by name."""
    hints = get_type_hints(owner, include_extras=True)
    return {
        name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")
    }


def unknown(names: Iterable[str], known: Iterable[str]) -> str:
    """The first name that is not known, and what may have been meant; empty if all are known."""
    listed = tuple(known)
    for name in names:
        if name not in listed and name not in WITHOUT_EFFECT:
            near = get_close_matches(name, listed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(listed)}"
            return f"no option {name!r}; {hint}"
    return ""
