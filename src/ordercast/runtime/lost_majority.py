"""What to say where a majority of the voters is lost: what ends that by itself, and which command
an operator can run.

The nodes that are left, nodes that want to join them, and `ordercast doctor` say it in the same
words. A command that is named can be copied and run.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ordercast.transport.security import Security

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

DEFAULT_CLUSTER = "ordercast"

CONDITION = "Only if each of the missing nodes was stopped or started again"
LOSS = "what only they had is lost"


def recover_command(address: str, cluster: str, security: Security) -> str:
    """The command that lets the nodes that are here go on; the address is that of one of them."""
    words = ["ordercast", "recover", "--node", address, *credential_words(cluster, security)]
    return shlex.join(words)


def credential_words(cluster: str, security: Security) -> list[str]:
    """The options with which a command gets to talk to these nodes.

    A key is never shown: KEYFILE stands for the file that has it.
    """
    words: list[str] = []
    if cluster != DEFAULT_CLUSTER:
        words += ["--cluster", cluster]
    if security.key:
        words += ["--key-file", "KEYFILE"]
    if security.tls is not None:
        tls = security.tls
        words += ["--tls-cert", str(tls.certificate), "--tls-key", str(tls.key)]
        words += ["--tls-ca", str(tls.authority)]
    elif security.insecure:
        words.append("--insecure")
    return words


def way_out(presence: Presence) -> str:
    """For the program of a node that is cut off."""
    stack, hello = presence.engine.stack, presence.peers.hello
    view, here = stack.node_view, stack.agreement.here()
    if view is None or not any(pid in here for pid in view.voters):
        return (
            "No node that votes is here. This node comes back by itself when enough of those that "
            "vote are heard again: go on reading the stream. If they are all gone, or were started "
            "again, there is nothing to go on from: stop these nodes, and start a new cluster "
            "(bootstrap=True)"
        )
    command = recover_command(hello.advertise, hello.cluster, presence.peers.security)
    return (
        f"It comes back by itself when enough of them are heard again{_or_the_list(presence)}: "
        f"go on reading the stream. {CONDITION}: `{command}` lets this side go on without them, "
        f"and {LOSS}"
    )


def why_nobody_gets_in(presence: Presence, missing: tuple[str, ...], name: str) -> str:
    """The answer of a node that is cut off to a node of that name which wants to join."""
    view = presence.engine.stack.node_view
    number = 0 if view is None else view.number
    told = (
        f"{presence.me.identity} is cut off: of node view {number} it cannot reach "
        f"{', '.join(missing)}, and the rest is no majority"
    )
    if view is not None and view.electorate:
        return f"{told}. It goes on by itself {all_of(view.electorate)}"
    if name in missing:
        return (
            f"{told}. If {name!r} was started again, it has forgotten its vote, and does not count"
        )
    return told


def _or_the_list(presence: Presence) -> str:
    view = presence.engine.stack.node_view
    if view is not None and view.electorate:
        return f", or {all_of(view.electorate)}"
    return " (a node that was started again has forgotten its vote, and does not count)"


def all_of(electorate: Iterable[str]) -> str:
    """When a cluster whose voters were listed goes on by itself."""
    return f"when {', '.join(electorate)} are all here, started again or not"
