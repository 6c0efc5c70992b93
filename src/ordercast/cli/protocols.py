"""`ordercast protocols`: what there is, what it promises and what it costs."""

from __future__ import annotations

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ordercast.cli.exits import console
from ordercast.cli.guarantees import markdown_table, needs_and_costs
from ordercast.core.declaration import LETTERS, NETWORKS, Declaration
from ordercast.protocols.registry import DEFAULTS, PROTOCOLS

SOURCES = {
    "000": "Kindberg: A Sequencing Service for Group Communication",
    "001": "slides after Coulouris, Dollimore, Kindberg: Distributed Systems",
    "002": "Taguchi, Enokido, Takizawa: Protocol for a Two-Layered Group",
    "003": "the TOTAL protocol layer of JavaGroups",
    "004": "Macêdo: Causal Order Protocols for Group Communication",
}  # docs/SOURCES.md has them all
SIGNS = "\n".join(
    (
        "*  the default protocol of this order",
        "scope: group, the order holds in each group; domain, across all groups of it",
        "net: the weakest network that it works on; the library provides that network",
        *(f"  {name:3}  {meaning}" for name, meaning in NETWORKS.items()),
        "head: integers in the header of a frame; packets: number for each frame",
        *(f"  {letter}  {meaning}" for letter, meaning in LETTERS.items()),
        "  NULLs  and an empty frame of each member that has nothing to say",
        "exact: a message waits only for what it depends on",
        "all speak: a silent member holds the others up",
        "open: a node that is no member may send to the group",
        "from: its source, see docs/SOURCES.md",
        *(f"  {number}  {title}" for number, title in SOURCES.items()),
        "--markdown prints all that protocols declare, as in docs/GUARANTEES.md",
    )
)
COLUMNS = (
    "protocol", "order", "scope", "net", "head", "packets", "exact", "all speak", "open", "from",
)  # fmt: skip
NEVER_CUT = ("protocol", "order", "scope", "net")


def protocols(
    as_json: bool = typer.Option(False, "--json", help="Print all that protocols declare as JSON."),
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
        table.add_column(column, no_wrap=column in NEVER_CUT)
    for one in declarations:
        table.add_row(*_cells(one))
    console.print(table)
    console.print(SIGNS, highlight=False)


def _cells(d: Declaration) -> tuple[str, ...]:
    """One protocol, in the order of COLUMNS."""
    orders = (f"{order}{'*' if DEFAULTS.get(order) == d.name else ''}" for order in d.orders)
    sources = (number for number in SOURCES if number in d.source)
    return (d.name, "\n".join(orders), *needs_and_costs(d), "\n".join(sources))
