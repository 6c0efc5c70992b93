"""Why a join took too long, and what to do about it: one function for each thing it waits for.

A node that waits for its cluster needs other advice than a node of the cluster that waits for a
group: only the first may be told to start a cluster.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ordercast.core.ids import Identity
from ordercast.errors import JoinTimeout
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.lost_majority import CONDITION, LOSS, credential_words, recover_command
from ordercast.views.changes import HOLD_UP
from ordercast.views.target import REMEMBERING

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

FLAPPING = (
    "A name that was excluded more than once within a minute waits before it is let in again: a "
    "second at first (four heartbeats), longer each time, and at most half a minute."
)
START_OR_FIND = "Start one node with bootstrap=True, or give the address of one that runs"


# -- on the way into the cluster ------------------------------------------------------------------


def no_seed_answered(presence: Presence, reasons: Mapping[str, str], seconds: float) -> JoinTimeout:
    """Nobody said hello at any of these addresses."""
    return _timeout(
        "no seed answered", reasons, seconds, f"{START_OR_FIND}; {_ask(presence, reasons)}"
    )


def nobody_was_discovered(presence: Presence, where: str, why: str, seconds: float) -> JoinTimeout:
    """Nobody answered at the multicast group."""
    advice = f"{START_OR_FIND}; {_ask(presence, ())}"
    return _timeout("no seed answered", {where: why}, seconds, advice)


def nobody_knows(presence: Presence, reasons: Mapping[str, str], seconds: float) -> JoinTimeout:
    """A seed can be neither reached nor excluded, so this node must not start a cluster."""
    advice = (
        "A second cluster beside a running one would never find it again: start this node when "
        f"that seed can be reached, or leave it out of the seeds; {_ask(presence, reasons)}"
    )
    what = "bootstrap=True with seeds, but a seed did not say whether it runs"
    return _timeout(what, reasons, seconds, advice)


def gave_way(presence: Presence, address: str, seconds: float) -> JoinTimeout:
    """Another node was to start the cluster, and did not."""
    reasons = {address: "it starts, too; its address is the smaller one, so it starts the cluster"}
    advice = f"Stop that node, or find out why it does not go on; {_ask(presence, reasons)}"
    what = "another node was about to start the cluster, and did not"
    return _timeout(what, reasons, seconds, advice)


def no_seed_let_it_in(
    presence: Presence, reasons: Mapping[str, str], seconds: float, *, coordinators: Iterable[str]
) -> JoinTimeout:
    """Some seed answered. `coordinators` are the addresses to which seeds sent this node."""
    asked = dict.fromkeys((*reasons, *coordinators))
    advice = (
        "Join again when the coordinator answers, or when the others have excluded it after "
        f"their suspect_ms; {_ask(presence, asked)}"
    )
    return _timeout("a seed answered, but none let this node in", reasons, seconds, advice)


def seeds_wait_too(presence: Presence, reasons: Mapping[str, str], seconds: float) -> JoinTimeout:
    """Every seed that answered looks for the cluster itself."""
    advice = (
        "All wait for each other: start exactly one node with bootstrap=True, or give the address "
        f"of a node that is in the cluster; {_ask(presence, reasons)}"
    )
    what = "a seed answered, but no seed got into a cluster itself"
    return _timeout(what, reasons, seconds, advice)


def not_primary(
    presence: Presence, reasons: Mapping[str, str], seconds: float, *, cut_off: str
) -> JoinTimeout:
    """A seed answered, and its cluster has no majority; the reasons name the missing nodes.
    `cut_off` is the address of a node of that cluster."""
    command = recover_command(cut_off, presence.peers.hello.cluster, presence.peers.security)
    advice = (
        "It lets nobody in until it reaches enough of the missing nodes again: mend the network "
        f"to them, or resume their processes. {CONDITION}: `{command}` lets the nodes that are "
        f"left go on, if one of them votes, and {LOSS}; then start this node again. "
        f"{_ask(presence, reasons)}"
    )
    what = "a seed answered, but its cluster is not primary and let nobody in"
    return _timeout(what, reasons, seconds, advice)


def members_unreachable(
    presence: Presence, reasons: Mapping[str, str], seconds: float
) -> JoinTimeout:
    """The coordinator let this node in, and some other node cannot be reached."""
    advice = (
        "A node connects to every other one: open the way there, or give that node advertise= "
        f"with an address that works from here; {_ask(presence, reasons)}"
    )
    what = "the cluster let this node in, but it could not connect to every node"
    return _timeout(what, reasons, seconds, advice)


def not_in_node_view(presence: Presence, seconds: float) -> JoinTimeout:
    """The coordinator let this node in, and no node view has it."""
    reasons = _about_coordinator(presence, "has not taken this node into the node view")
    what = "the cluster let this node in, but the node view did not come"
    advice = f"Start this node again later; {_ask(presence, reasons)}"
    if presence.me.incarnation > 2:
        advice = f"{FLAPPING} {advice}"
    return _timeout(what, reasons, seconds, advice)


def all_nodes_gone(presence: Presence, address: str, seconds: float) -> JoinTimeout:
    """All nodes that were to let this one into their view are gone."""
    reasons = {address: "it let this node in, and then it and all other nodes were gone"}
    advice = f"{START_OR_FIND}; {_ask(presence, reasons)}"
    what = "the cluster let this node in, but the node view did not come"
    return _timeout(what, reasons, seconds, advice)


# -- in the cluster, on the way into a group ------------------------------------------------------


def no_answer_about(presence: Presence, group: str, seconds: float) -> JoinTimeout:
    """The coordinator has not said what the group is."""
    what = f"the coordinator gave no answer about group {group!r}"
    return _group_timeout(presence, what, "has not answered", seconds)


def no_first_view(presence: Presence, group: str, seconds: float) -> JoinTimeout:
    """The group is known, and no view of it has this node."""
    absent = _absent_from(presence, group)
    if absent:
        what = (
            f"group {group!r} has no members, and waits for {', '.join(absent)}, which did not "
            "leave in order and may have newer state: it was not joined"
        )
        reasons = _about_coordinator(presence, "was asked to let this node in")
        advice = (
            "Start those nodes again, or join again later: the group waits for "
            f"refound_ms={presence.options.refound_ms} in all while a node asks for it, "
            f"{REMEMBERING} times as long if a node that asks remembers an older state; "
            f"`ordercast groups refound {group}` ends that, and what only they have is lost."
        )
        return _timeout(what, reasons, seconds, advice)
    what = f"group {group!r} was not joined: its first view did not come"
    return _group_timeout(presence, what, "was asked to let this node in", seconds)


def _absent_from(presence: Presence, group: str) -> list[str]:
    """Nodes that an empty group may wait for, as far as this node knows."""
    rows = presence.engine.stack.rows.values()
    row = next((row for row in rows if row.entry.name == group), None)
    if row is None or row.members:
        return []
    return [str(Identity(absent.name, absent.incarnation)) for absent in row.absent]


def not_a_guest(presence: Presence, group: str, seconds: float) -> JoinTimeout:
    """The group is known, and has not taken this node as a guest."""
    what = f"group {group!r} cannot be sent to: this node was not let in as a guest"
    return _group_timeout(presence, what, "was asked to let this node in", seconds)


def not_left(presence: Presence, group: str, seconds: float) -> JoinTimeout:
    """This node is on its way out of the group, and not out yet."""
    what = f"group {group!r} was not joined: this node did not finish leaving it"
    return _group_timeout(presence, what, "was asked to let this node go", seconds)


def guest_session_did_not_end(presence: Presence, group: str, seconds: float) -> JoinTimeout:
    """What this node sent as a guest must be in order before it is a member."""
    what = f"group {group!r} was not joined: what this node sent as a guest was not ordered"
    return _group_timeout(presence, what, "was asked to let the guest go", seconds)


def _group_timeout(presence: Presence, what: str, did: str, seconds: float) -> JoinTimeout:
    reasons = _about_coordinator(presence, did)
    advice = f"This node is in the cluster: join again later; {_ask(presence, reasons)}"
    return _timeout(what, reasons, seconds, advice)


def _about_coordinator(presence: Presence, did: str) -> dict[str, str]:
    coordinator = presence.cluster_membership.coordinator
    waits = _waits_for(presence)
    return {coordinator.address: f"the coordinator {coordinator.identity} {did}; {waits}"}


def _waits_for(presence: Presence) -> str:
    """The nodes that keep the cluster waiting, as far as this node sees."""
    cluster_membership, options = presence.cluster_membership, presence.options
    missing = cluster_membership.missing_names()
    if missing:
        return f"the cluster is not primary, since it misses {', '.join(missing)}"
    silent = [
        f"{identity} for {silence} ms"
        for identity, silence in cluster_membership.silent_ms().items()
        if silence >= 2 * options.heartbeat_ms
    ]
    if silent:
        return (
            f"nothing has come from {', '.join(silent)}, and the cluster waits for a silent node "
            f"until it is excluded after suspect_ms={options.suspect_ms}"
        )
    return (
        "heartbeats come from all nodes, so a program may be stuck; one that does not answer is "
        f"excluded after {HOLD_UP} times suspect_ms={options.suspect_ms}"
    )


# -- words ----------------------------------------------------------------------------------------


def _timeout(what: str, reasons: Mapping[str, str], seconds: float, advice: str) -> JoinTimeout:
    return JoinTimeout(reasons, seconds, what=what, advice=advice)


def _ask(presence: Presence, addresses: Iterable[str]) -> str:
    return f"`{doctor_command(presence, addresses)}` says what is in the way"


def doctor_command(presence: Presence, addresses: Iterable[str]) -> str:
    """The command that examines these addresses with what this node was given."""
    hello, security, discover = (
        presence.peers.hello,
        presence.peers.security,
        presence.options.discover,
    )  # fmt: skip
    words = ["ordercast", "doctor", *addresses]
    if discover is not None:
        host, _ = parse_address("bind", presence.peers.address)
        words += ["--discover", discover.group, "--bind", f"{discover.interface_of(host)}:0"]
    return shlex.join([*words, *credential_words(hello.cluster, security)])
