"""The state of a node, and its limits, for `stats()` and `ordercast status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ordercast import __version__
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.control import StatusReply, StatusRequest
from ordercast.runtime.exposure import check_address
from ordercast.runtime.frame_counts import FrameCounts
from ordercast.runtime.query_client import QueryClient
from ordercast.runtime.status_decoding import decode_status
from ordercast.transport.security import Security
from ordercast.transport.tcp import connect
from ordercast.transport.tls import Tls
from ordercast.wire.control import Hello

if TYPE_CHECKING:
    from ordercast.runtime.guest_session import GuestSession
    from ordercast.runtime.membership import Membership
    from ordercast.runtime.presence import Presence
    from ordercast.runtime.sending import Sending


def stats_of(presence: Presence) -> dict[str, Any]:
    """Counts and limits; a limit stands beside what it limits."""
    options = presence.options
    oldest = presence.engine.ages.oldest()
    machines, counts = presence.engine.stack.groups.machines, FrameCounts(presence.engine.stack)
    stats: dict[str, Any] = {
        "incarnation": presence.me.incarnation,
        **presence.lifetime.facts(),
        **presence.cluster_membership.facts(),
        "nodes": len(presence.directory.live),
        "max_nodes": options.max_nodes,
        "peer_faults": presence.peers.peer_faults,
        "conflicts": presence.conflicts.stats(),
        "packet_errors": presence.packet_errors.stats(),
        "connections": {**presence.peers.counters.as_dict(), "open": len(presence.peers.bound)},
        "strangers": presence.peers.unbound,
        "max_strangers": presence.peers.waiting.most,
        "stranger_bytes": presence.peers.waiting.kept,
        "max_stranger_bytes": presence.peers.waiting.max_bytes,
        "buffered_bytes": max((c.buffered for c in presence.peers.bound.values()), default=0),
        "max_buffered": presence.peers.limits.max_buffered,
        "node_window_bytes": presence.window.size,
        "node_window_used": presence.window.size - presence.window.free,
        "groups_waiting": len(presence.window.waiting),
        "held_bytes": presence.engine.hold_back_quota.most,
        "max_held_bytes": presence.engine.hold_back_quota.limit,
        "loop_stalls": presence.stalls.stats(),
        "pulses": presence.pulses.stats(),
        "return_calls": presence.return_calls.stats(),
        "administration": presence.administration.stats(),
        "sequencing": presence.administration.placement.stats(counts),
        "steps": presence.engine.steps,
        "retransmits": presence.engine.retransmits,
        "slow_seconds": options.slow_seconds,
        "groups": {
            m.group.name: _group_stats(presence, m)
            | counts.of(m.group.gid)
            | {"oldest_held_seconds": round(oldest.get(m.group.gid, 0.0), 3)}
            for m in presence.groups.memberships.values()
            if m.group.gid in machines  # a node that closes forgets the machine first
        },
        "state": presence.states.stats(),
        "other_clusters": presence.rivals.stats(),
        "guest_of": {
            v.group.name: _guest_stats(presence, v, counts)
            for v in presence.groups.guest_sessions.values()
            if v.group.gid in machines
        },
    }
    if presence.peers.datagrams is not None:
        stats["datagrams"] = presence.peers.datagrams.stats()
    if presence.answerer is not None:
        stats["discovery"] = presence.answerer.stats()
    if presence.cluster_membership.coordinates:
        stats["leads"] = presence.cluster_membership.requests.names.stats(counts)
    if presence.recorder is not None:
        stats["recorder"] = presence.recorder.stats()
    return stats


def _group_stats(presence: Presence, member: Membership) -> dict[str, Any]:
    members = member.view.members if member.view is not None else ()
    view = presence.engine.stack.view(member.group.gid)
    guests = presence.directory.names_of(view.guests) if view is not None else ()
    window = member.window
    return _sending_stats(member) | {
        "slow": member.group.slow,
        "slow_members": presence.slow_readers.slow_members(member.group.gid),
        "view": member.view.number if member.view is not None else 0,
        "members": list(members),
        "guests": list(guests),
        "subgroups": _subgroups(presence, member),
        "inbox_frames": member.pending_frames,
        "inbox_bytes": member.pending_bytes,
        "inbox_limit": (len(members) + len(guests)) * (window.size + window.reserve),
    }


def _subgroups(presence: Presence, member: Membership) -> list[list[str]]:
    """The members by where they are, each subgroup with its gateway first; else nothing."""
    gid, stack = member.group.gid, presence.engine.stack
    view = stack.view(gid)
    if view is None or member.view is None:
        return []
    found = view.subgroups or stack.groups.machines[gid].subgroups(view.members)
    return [list(presence.directory.names_of(inside)) for inside in found]


def _guest_stats(presence: Presence, session: GuestSession, counts: FrameCounts) -> dict[str, Any]:
    unsent_frames = counts.unsent(session.group.gid)
    slow = presence.slow_readers.slow_members(session.group.gid)
    return _sending_stats(session) | {"frames_unsent": unsent_frames, "slow_members": slow}


def _sending_stats(sending: Sending) -> dict[str, Any]:
    window = sending.window
    return {
        "order": sending.group.order,
        "protocol": sending.group.protocol,
        "window_bytes": window.size,
        "window_used": window.size - window.free,
        "window_now": window.pace.allowed,
        "reply_reserve": window.reserve,
        "reply_reserve_used": min(window.reserve, max(0, -window.free)),
        "replies_beyond_reserve": max(0, -window.free - window.reserve),
        "frames_under_way": window.frames,
        "multicasts_waiting": len(window.waiters),
        "multicasts_waited": window.waits,
        "frames_sent": sending.frames_sent,
        "messages_sent": sending.next_message - 1,
        "frames_ordered": sending.progress.ordered.value,
        "frames_stable": sending.progress.stable.value,
    }


def status_json(presence: Presence) -> bytes:
    """The answer to a question for the status."""
    told = {
        "name": presence.peers.hello.name,
        "address": presence.peers.hello.advertise,
        "cluster": presence.peers.hello.cluster,
        "version": __version__,
        "heartbeat_ms": presence.options.heartbeat_ms,
        "suspect_ms": presence.options.suspect_ms,
        "shared_options": presence.options.shared(),
    }
    if not presence.in_cluster:
        out = presence.state == "out"
        facts = presence.lifetime.facts() if out else {}
        return msgspec.json.encode({**told, "state": presence.state, **facts})
    return msgspec.json.encode(
        {
            **told,
            **presence.facts(),
            "state": presence.state,
            "nodes": [
                {
                    "pid": n.pid,
                    "name": n.name,
                    "incarnation": n.incarnation,
                    "address": n.address,
                    "site": n.site,
                    "gateway": n.gateway,
                }
                for n in presence.directory.live.values()
            ],
            "groups": presence.cluster_membership.requests.names.described(),
            "stats": stats_of(presence),
        }
    )


async def query_status(
    address: str,
    *,
    cluster: str = "ordercast",
    timeout: float = 5.0,
    tls: Tls | None = None,
    key: bytes | str | None = None,
    insecure: bool = False,
) -> dict[str, Any]:
    """Ask a running node how it is. `OSError` or `PeerError` if it gives no answer to read.

    A cluster with TLS or a key answers nobody without; `tls`, `key`, `insecure` as for `Node`.
    """
    host, port = parse_address("address", address)
    security = Security.given(key, tls, insecure)
    check_address(security, "address", address)
    client = QueryClient()
    hello = Hello(cluster=cluster, name="status", incarnation=0)
    conn = await connect(
        host, port, hello=hello, handler=client, timeout=timeout, security=security
    )
    try:
        _, reply = await client.ask(conn, StatusRequest(), StatusReply, timeout)
    finally:
        conn.close("asked")
    return decode_status(address, reply)
