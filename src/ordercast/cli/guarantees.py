"""The protocol table for the docs, made from what the protocols declare."""

from __future__ import annotations

from ordercast.core.declaration import LETTERS, NETWORKS, Declaration
from ordercast.protocols.registry import DEFAULTS, PROTOCOLS

COLUMNS = (
    "protocol", "order", "scope", "network", "header", "packets", "control",
    "waits exactly", "everyone must speak", "open group", "when idle", "source",
)  # fmt: skip


def markdown_table() -> str:
    """All protocols, what they promise, and the network classes they name."""
    lines = [_row(COLUMNS), _row(["---"] * len(COLUMNS))]
    lines += [_row(_cells(protocol.declaration)) for protocol in PROTOCOLS.values()]
    letters = "; ".join(f"{letter}: {meaning}" for letter, meaning in LETTERS.items())
    packets = (
        "Packets: packets for a frame. Control: acknowledgements and other small packets besides, "
        "if frames come one by one; in a stream there are fewer"
    )
    lines += ["", f"Header: integers in the header of a frame. {packets}. {letters}.", ""]
    lines += ["Open group: a node that is not a member may send to it (`Node.send_to`).", ""]
    for protocol in PROTOCOLS.values():
        d = protocol.declaration
        promises = ", ".join(f"`{promise}`" for promise in d.promises)
        closed = f" Only members may send: {d.closed}." if d.closed else ""
        says = f"promises {promises}. On a crash, {d.crash}.{closed}"
        lines.append(f"- **`{d.name}`** ({d.source}) {says}")
    lines += ["", *(f"- **{name}**: {meaning}." for name, meaning in NETWORKS.items())]
    return "\n".join(lines)


def _cells(d: Declaration) -> tuple[str, ...]:
    """One protocol, in the order of COLUMNS."""
    orders = (f"`{order}`{_default(order, d.name)}" for order in d.orders)
    scope, network, header, packets, *rest = needs_and_costs(d)
    costs = (header, packets, d.control)
    return (f"`{d.name}`", ", ".join(orders), scope, network, *costs, *rest, d.silence, d.source)


def needs_and_costs(d: Declaration) -> tuple[str, ...]:
    """What every table of protocols has, from its scope to whether its group is open."""
    return (
        d.scope,
        d.network,
        d.header,
        d.packets,
        "yes" if d.exact else "no",
        "yes" if d.everyone_speaks else "no",
        "no" if d.closed else "yes",
    )


def _default(order: str, name: str) -> str:
    return " (default)" if DEFAULTS.get(order) == name else ""


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
