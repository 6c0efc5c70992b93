"""`ordercast protocols`: what there is, what it promises and what it costs."""

from __future__ import annotations

import msgspec
import typer
from rich.table import Table

from ordercast.cli.exits import console
from ordercast.cli.guarantees import markdown_table
from ordercast.protocols.registry import PROTOCOLS


def protocols(
    as_json: bool = typer.Option(False, "--json", help="Print everything they declare as JSON."),
    markdown: bool = typer.Option(False, "--markdown", help="Print the table of the docs."),
) -> None:
    """List the protocols: order, scope, cost, needs."""
    declarations = [protocol.declaration for protocol in PROTOCOLS.values()]
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(declarations)).decode())
        return
    if markdown:
        print(markdown_table())
        return
    table = Table(title="Protocols", caption="n members; more in docs/GUARANTEES.md")
    for column in ("protocol", "order", "scope", "needs", "header", "packets", "when idle"):
        table.add_column(column, overflow="fold")
    for one in declarations:
        table.add_row(
            one.name, one.order, one.scope, one.network, one.header, one.packets, one.silence
        )
    console.print(table)
