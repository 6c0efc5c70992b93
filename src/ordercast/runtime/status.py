"""How a node is: every limit and how near it is. For `stats()` and for `ordercast status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ordercast import __version__
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.asking import Line
from ordercast.runtime.control import StatusReply, StatusRequest
from ordercast.runtime.exposure import check_address
from ordercast.runtime.holdings import holdings_of, unsent
from ordercast.transport.security import Security
from ordercast.transport.tcp import connect
from ordercast.transport.tls import Tls
from ordercast.wire.control import Hello

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership
    from ordercast.runtime.sending import Sending
    from ordercast.runtime.site import Site
    from ordercast.runtime.visit import Visit


def stats_of(site: Site) -> dict[str, Any]:
    """Counts and limits; a limit stands beside what it limits."""
    options = site.options
    oldest = site.engine.ages.oldest()
    stats: dict[str, Any] = {
        "incarnation": site.me.incarnation,
        **site.lifetime.facts(),
        **site.nodeship.facts(),
        "nodes": len(site.directory.live),
        "max_nodes": options.max_nodes,
        "peer_faults": site.peers.peer_faults,
        "connections": {**site.peers.counters.as_dict(), "open": len(site.peers.bound)},
        "strangers": site.peers.unbound,
        "max_strangers": site.peers.max_unbound,
        "buffered_bytes": max((c.buffered for c in site.peers.bound.values()), default=0),
        "max_buffered": site.peers.limits.max_buffered,
        "loop_stalls": site.stalls.stats(),
        "return_calls": site.return_calls.stats(),
        "administration": site.administration.stats(),
        "sequencing": site.administration.placement.stats(),
        "steps": site.engine.steps,
        "retransmits": site.engine.retransmits,
        "groups": {
            m.group.name: _group_stats(site, m)
            | holdings_of(site.engine.stack, m.group.gid)
            | {"oldest_held_seconds": round(oldest.get(m.group.gid, 0.0), 3)}
            for m in site.memberships.values()
        },
        "state": site.states.stats(),
        "guest_of": {v.group.name: _guest_stats(site, v) for v in site.visits.values()},
    }
    if site.peers.datagrams is not None:
        stats["datagrams"] = site.peers.datagrams.stats()
    if site.answerer is not None:
        stats["discovery"] = site.answerer.stats()
    if site.nodeship.coordinates:
        stats["leads"] = site.nodeship.requests.names.stats()
    if site.recorder is not None:
        stats["recorder"] = site.recorder.stats()
    return stats


def _group_stats(site: Site, member: Membership) -> dict[str, Any]:
    members = member.view.members if member.view is not None else ()
    view = site.engine.stack.view(member.group.gid)
    guests = site.directory.names_of(view.guests) if view is not None else ()
    window = member.window
    return _sending_stats(member) | {
        "view": member.view.number if member.view is not None else 0,
        "members": list(members),
        "guests": list(guests),
        "subgroups": _subgroups(site, member),
        "inbox_frames": member.pending_frames,
        "inbox_bytes": member.pending_bytes,
        "inbox_limit": (len(members) + len(guests)) * (window.size + window.reserve),
    }


def _subgroups(site: Site, member: Membership) -> list[list[str]]:
    """The members by where they are, each subgroup with its gateway first; else nothing."""
    gid, stack = member.group.gid, site.engine.stack
    view = stack.view(gid)
    if view is None or member.view is None:
        return []
    found = view.subgroups or stack.protocols[gid].subgroups(view.members)
    return [list(site.directory.names_of(inside)) for inside in found]


def _guest_stats(site: Site, visit: Visit) -> dict[str, Any]:
    unsent_frames = unsent(site.engine.stack, visit.group.gid)
    return _sending_stats(visit) | {"frames_unsent": unsent_frames}


def _sending_stats(sending: Sending) -> dict[str, Any]:
    window = sending.window
    return {
        "order": sending.group.order,
        "protocol": sending.group.protocol,
        "window_bytes": window.size,
        "window_used": window.size - window.free,
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


def status_json(site: Site) -> bytes:
    """What a node answers to everybody who asks."""
    told = {
        "name": site.peers.hello.name,
        "address": site.peers.hello.advertise,
        "cluster": site.peers.hello.cluster,
        "version": __version__,
        "heartbeat_ms": site.options.heartbeat_ms,
        "suspect_ms": site.options.suspect_ms,
        "shared_options": site.options.shared(),
    }
    if not site.in_cluster:
        out = site.lifetime.out_since is not None
        state = {"state": "out", **site.lifetime.facts()} if out else {"state": "joining"}
        return msgspec.json.encode(told | state)
    return msgspec.json.encode(
        {
            **told,
            **site.facts(),
            "state": "ended" if site.error is not None else "running",
            "nodes": [
                {
                    "name": n.name,
                    "incarnation": n.incarnation,
                    "address": n.address,
                    "site": n.site,
                    "gateway": n.gateway,
                }
                for n in site.directory.live.values()
            ],
            "groups": site.nodeship.requests.names.described(),
            "stats": stats_of(site),
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
    """Ask a running node how it is. `OSError` or `PeerError` if it does not answer.

    A cluster with TLS or a key answers nobody without; `tls`, `key`, `insecure` as for `Node`.
    """
    host, port = parse_address("address", address)
    security = Security.given(key, tls, insecure)
    check_address(security, "address", address)
    line = Line()
    hello = Hello(cluster=cluster, name="status", incarnation=0)
    conn = await connect(host, port, hello=hello, handler=line, timeout=timeout, security=security)
    try:
        _, reply = await line.ask(conn, StatusRequest(), StatusReply, timeout)
    finally:
        conn.close("asked")
    status: dict[str, Any] = msgspec.json.decode(reply)
    return status
