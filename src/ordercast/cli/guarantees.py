"""The protocol table for the docs, made from what the protocols declare."""

from __future__ import annotations

from ordercast.core.declaration import NETWORKS
from ordercast.protocols.registry import DEFAULTS, PROTOCOLS

COLUMNS = ("protocol", "order", "scope", "needs", "header", "packets", "waits exactly", "when idle")


def markdown_table() -> str:
    """All protocols, what they promise, and the network classes they name."""
    lines = [_row(COLUMNS), _row(["---"] * len(COLUMNS))]
    for name, protocol in PROTOCOLS.items():
        d = protocol.declaration
        default = " (default)" if DEFAULTS.get(d.order) == name else ""
        exact = "yes" if d.exact else "no"
        lines.append(
            _row(
                (
                    f"`{name}`",
                    f"`{d.order}`{default}",
                    d.scope,
                    d.network,
                    d.header,
                    d.packets,
                    exact,
                    d.silence,
                )
            )
        )
    lines += ["", "Header: integers in each header. Packets: per frame, in a group of n.", ""]
    for protocol in PROTOCOLS.values():
        d = protocol.declaration
        promises = ", ".join(f"`{promise}`" for promise in d.promises)
        lines.append(f"- **`{d.name}`** ({d.source}) promises {promises}. On a crash, {d.crash}.")
    lines += ["", *(f"- **{name}**: {meaning}." for name, meaning in NETWORKS.items())]
    return "\n".join(lines)


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
