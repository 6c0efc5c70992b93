"""Everything that can be found, worst first, each with what to do about it.

A *fault* keeps a node out, or the cluster apart. A *warning* will hurt later. A *note* is no
trouble, but good to know. docs/DOCTOR.md has the same list with symptoms.
"""

from __future__ import annotations

from typing import Literal

Level = Literal["fault", "warning", "note"]
LEVELS: tuple[Level, ...] = ("fault", "warning", "note")

COMMAND = "{command}"  # its place in a cure

CATALOGUE: dict[str, tuple[Level, str]] = {
    # -- this machine ----------------------------------------------------------------------------
    "address": ("fault", "Write host:port, as the node prints it: 127.0.0.1:7700 or [::1]:7700."),
    "exposed": (
        "fault",
        "Give tls=; or insecure=True (here: --insecure) if everybody on that network may read and "
        "change what the nodes say. A node refuses such addresses until one of the two is given.",
    ),
    "bind_elsewhere": (
        "fault",
        "Bind the node to an address of this machine; if others reach it at another one, give that "
        "as `advertise`.",
    ),
    "bind_taken": (
        "fault",
        "Stop what listens there, or choose another port; port 0 takes any free one.",
    ),
    "bind_loopback": (
        "fault",
        "Bind the node to an address that the others can reach, or to 0.0.0.0 with advertise=.",
    ),
    "own_certificate": (
        "fault",
        "Get a certificate from the cluster's authority that is valid today, with its own key.",
    ),
    # -- the way there ---------------------------------------------------------------------------
    "unresolved": ("fault", "Correct the name, or the resolver; or give the address in numbers."),
    "refused": (
        "fault",
        "Start the node, or correct the port. A node listens at `bind` only: bound to 127.0.0.1 it "
        "is deaf to other machines.",
    ),
    "silence": (
        "fault",
        "Packets are dropped on the way: open the port in the firewall, security group or network "
        "policy, or correct the host.",
    ),
    "not_discovered": (
        "fault",
        "Multicast passes no router and few container networks: give seeds=, or an interface. A "
        "node is found only if it has discover= with the same group itself.",
    ),
    "no_route": ("fault", "Correct the host, or the routes of this machine; mind IPv4 and IPv6."),
    "mute": (
        "fault",
        "If a node should be there, its process hangs or is stopped: look at its event loop "
        "(py-spy dump), or restart it. Else correct the port.",
    ),
    "stranger": ("fault", "Correct the port: another program listens at this one."),
    "tls_there": (
        "fault",
        "The node uses TLS: give yours tls= (here: --tls-cert, --tls-key and --tls-ca).",
    ),
    "plain_there": (
        "fault",
        "The node does not use TLS: give it tls= too, or start yours without tls=.",
    ),
    "certificate": (
        "fault",
        "Renew or correct the certificate of the node at that address: the certificates of all "
        "nodes of a cluster are issued by one authority. Host names are not checked.",
    ),
    "certificate_refused": (
        "fault",
        "The other side does not accept this side's certificate: give a certificate of the "
        "cluster's authority that is valid today, with --tls-cert and --tls-key.",
    ),
    "tls": ("fault", "Compare the TLS settings of both sides: version, ciphers, certificates."),
    "hung_up": (
        "fault",
        "It closes the connection and says nothing, as nodes do with strangers: compare the key "
        "and the TLS settings of both sides, and read the log of that node.",
    ),
    # -- not one of them -------------------------------------------------------------------------
    "version": ("fault", "Run releases that speak a common wire version on all nodes."),
    "cluster": ("fault", "Give the same cluster= on all nodes, or the address of another cluster."),
    "key": ("fault", "Give the cluster's key: key=, ORDERCAST_KEY or --key-file."),
    "refusal": ("fault", "The node refuses the connection; its text says why."),
    "status": (
        "fault",
        "This release cannot read the answer: run the same release on all nodes.",
    ),
    "full": (
        "fault",
        "Raise max_nodes of the node that coordinates, or start a second cluster.",
    ),
    "name_taken": (
        "fault",
        "Names are unique: choose another name, or stop that node first. If it crashed just now, "
        "wait for suspect_ms until the others have excluded it.",
    ),
    "options_differ": ("fault", "Give this option the same value on all nodes of the cluster."),
    "order_mismatch": (
        "fault",
        "A group's order is fixed when it is made: join it with that order, or use another name.",
    ),
    "groups_full": ("fault", "Raise max_groups of the node that coordinates, or reuse groups."),
    # -- the cluster is not one ------------------------------------------------------------------
    "no_majority": (
        "fault",
        "If the missing nodes run, mend the network to them, or resume their processes: then the "
        "cluster goes on by itself. If not, make sure that each of them was stopped or started "
        f"again, then run `{COMMAND}`, which asks once more: the nodes that are here go on, and "
        "what only the missing nodes had is lost (`ordercast forget NAME...` gives up only some of "
        "them). A cluster that begins with voters= or members= goes on by itself when all nodes of "
        "that list are here, started again or not; workers with voter=False may die together.",
    ),
    "no_voter": (
        "fault",
        "Mend the network to the nodes that vote, or resume their processes. If they are all gone, "
        "or were started again, there is nothing to go on from: stop these nodes, and start a new "
        "cluster, one node with bootstrap=True.",
    ),
    "each_alone": (
        "fault",
        "Each of these was started with bootstrap=True. Start only one so, and give its address to "
        "the others as a seed.",
    ),
    "nobody_leads": (
        "fault",
        "All nodes wait for each other. Start exactly one node with bootstrap=True.",
    ),
    "joining": (
        "fault",
        "Wait until that node is in its cluster; if it never is, examine its seeds.",
    ),
    "several_clusters": (
        "fault",
        "Give seeds of one cluster only. Stop the nodes of the other, and start them again with "
        "these seeds.",
    ),
    "second_cluster": (
        "fault",
        "Two clusters of one name never become one by themselves: stop the nodes of one of them, "
        "and start each again with seeds= of the one that stays.",
    ),
    "partition": (
        "fault",
        "The network is cut between the two: repair it, and the sides find each other by "
        "themselves. Until then join where the majority is.",
    ),
    "out": (
        "fault",
        "The others went on without it, or it is cut off from them. It comes back by itself when "
        "the reason that it gives has passed; until then, ask a node of the majority.",
    ),
    "not_running": ("fault", "Restart that node, or ask another one."),
    "member_unreachable": (
        "fault",
        "A node connects to every other one: open the way there, or give that node advertise= "
        "with an address that works from here.",
    ),
    "member_elsewhere": (
        "fault",
        "Another node has that address now. If the first one is gone, the cluster will exclude it; "
        "if it runs, it advertises a wrong address (advertise=).",
    ),
    "way_back": (
        "fault",
        "Traffic passes in one direction only: open this machine's port for the cluster, or give "
        "advertise= with an address that works from there.",
    ),
    "way_back_elsewhere": (
        "fault",
        "An address is translated on the way (NAT): give advertise=host:port as the others see "
        "this node, and forward that port.",
    ),
    # -- clocks ----------------------------------------------------------------------------------
    "heartbeats_clash": (
        "fault",
        "Give heartbeat_ms and suspect_ms the same values on all nodes; suspect_ms is at least "
        "twice heartbeat_ms.",
    ),
    "round_trip": (
        "warning",
        "Raise suspect_ms on all nodes, or find what makes the network or the node slow; otherwise "
        "live nodes will be excluded.",
    ),
    "stalls": (
        "warning",
        "Something blocks that node's event loop: move long work into a thread or a process "
        "(asyncio.to_thread), or raise suspect_ms on all nodes.",
    ),
    "trace_fails": (
        "warning",
        "Make room on the disk of its trace, or repair that disk: recording goes on by itself, and "
        "says how many records are missing. Messages are not affected.",
    ),
    "heartbeats_differ": ("warning", "Give all nodes the same heartbeat_ms and suspect_ms."),
    "slow_member": (
        "warning",
        "Its program must read its stream (async for event in node) in a task of its own. If the "
        "others must not wait for such a member, join the group with slow='exclude'.",
    ),
    "standing": (
        "warning",
        "Its program blocks the event loop: move long work into a thread or a process "
        "(asyncio.to_thread). Otherwise the node is excluded after stall_ms.",
    ),
    "no_pulses": (
        "note",
        "Open that UDP port between the nodes; otherwise a node whose program blocks the event "
        "loop for suspect_ms is excluded.",
    ),
    "lists_differ": (
        "warning",
        "A view change may be under way: ask again in a few seconds. If it stays, the network is "
        "cut between these nodes.",
    ),
    # -- good to know ----------------------------------------------------------------------------
    "releases_differ": ("note", "Finish the upgrade: run the same release on all nodes."),
    "options_not_default": ("note", "Give your node this option with this value too."),
    "group_is_new": ("note", "Its first member makes it, in the order that it asks for."),
}
