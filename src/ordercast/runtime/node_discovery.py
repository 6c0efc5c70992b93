"""Discovery for one node: it finds its cluster at a multicast group, and is found there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.errors import UsageError
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.join_timeouts import nobody_was_discovered
from ordercast.transport.answering import Answerer
from ordercast.transport.discovery import Discovery, Search

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

LISTEN_S = 0.3  # how long a node that starts a cluster listens whether there is one already


def answerer_of(presence: Presence) -> Answerer | None:
    """Answers newcomers while the node is in the cluster; None if nobody wants it to."""
    settings = presence.options.discover
    if settings is None:
        return None

    def nodes() -> int:
        return len(presence.directory.live) if presence.in_cluster and presence.error is None else 0

    return Answerer(settings, _host(presence), presence.peers.hello, _key(presence), nodes)


async def find_seeds(presence: Presence, settings: Discovery, timeout: float) -> tuple[str, ...]:
    """The addresses of nodes that answered; `JoinTimeout` says what was asked if none did."""
    search = await _search(presence, settings, timeout)
    if not search.found:
        raise nobody_was_discovered(presence, search.where(), search.why_nobody(), timeout)
    return tuple(search.found)


async def check_that_nobody_answers(presence: Presence) -> None:
    """A second cluster of the same name beside the first is a mistake: `UsageError`.

    It happens when the node that once began the cluster is started again while the others live.
    """
    if presence.options.discover is None:
        return
    search = await _search(presence, presence.options.discover, LISTEN_S)
    if search.found:
        there = ", ".join(f"{name} at {address}" for address, name in search.found.items())
        raise UsageError(
            f"bootstrap=True would start a second cluster {presence.peers.hello.cluster!r}: "
            f"{there} answered at {search.where()}. Start this node without bootstrap=True to "
            "join them, or give the new cluster another name"
        )


async def _search(presence: Presence, settings: Discovery, timeout: float) -> Search:
    search = Search(settings, _host(presence), presence.peers.hello.cluster, _key(presence))
    await search.run(timeout)
    return search


def _host(presence: Presence) -> str:
    return parse_address("bind", presence.peers.address)[0]


def _key(presence: Presence) -> bytes:
    return presence.peers.security.key
