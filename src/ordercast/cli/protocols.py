"""`ordercast protocols`: what there is, what it promises and what it costs."""

from __future__ import annotations

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ordercast.cli.exits import console
from ordercast.cli.guarantees import markdown_table
from ordercast.core.declaration import LETTERS, Declaration
from ordercast.protocols.registry import DEFAULTS, PROTOCOLS

SIGNS = "\n".join(
    (
        "*  what this order gets by default",
        "header: integers per frame; packets: per frame",
        *(f"{letter}  {meaning}" for letter, meaning in LETTERS.items()),
        "exact: a message waits only for what it depends on",
        "all speak: a silent member holds the others up",
        "--markdown prints all that they declare",
    )
)
COLUMNS = (
    "protocol", "order", "scope", "net", "header", "packets", "exact", "all speak", "source",
)  # fmt: skip


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
    table = Table(title="Protocols", box=SIMPLE_HEAD, padding=0, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, no_wrap=column in ("protocol", "net"))
    for one in declarations:
        table.add_row(*cells(one))
    console.print(table)
    console.print(SIGNS)


def cells(d: Declaration) -> tuple[str, ...]:
    """One protocol, in the order of COLUMNS."""
    orders = (f"{order}{'*' if DEFAULTS.get(order) == d.name else ''}" for order in d.orders)
    return (
        d.name,
        "\n".join(orders),
        d.scope,
        d.network,
        d.header,
        d.packets,
        "yes" if d.exact else "no",
        "yes" if d.everyone_speaks else "no",
        d.source,
    )
