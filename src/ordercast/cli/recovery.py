"""`ordercast forget` and `ordercast recover`: an operator says which nodes are gone.

Any node is asked, also one that is cut off: it needs no majority.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import typer
from rich.table import Table

from ordercast.cli.admin import CLUSTER, JSON, PATIENCE
from ordercast.cli.credentials import (
    INSECURE,
    KEY,
    KEY_FILE,
    TLS_CA,
    TLS_CERT,
    TLS_KEY,
    credentials,
)
from ordercast.cli.exits import (
    BAD_INPUT,
    VIOLATED,
    console,
    errors_as_exits,
    escape,
    fail,
    progress,
)
from ordercast.errors import UsageError
from ordercast.service.administrator import Administrator
from ordercast.service.survey import Survey, survey
from ordercast.transport.security import Security

NODE = typer.Option(
    "127.0.0.1:7700", "--node", metavar="HOST:PORT", help="A node of the side that is to go on."
)
YES = typer.Option(
    None, "--yes", metavar="VIEW",
    help="The number of the node view, instead of a question for it.",
)  # fmt: skip

WARNING = (
    "The missing nodes may still run, and may have gone on without the nodes that are here. If so, "
    "everything that they did since is given up: messages that they delivered are lost, and the "
    "nodes come back as newcomers. If they are dead, what only they had is lost. "
    "Make sure that they are stopped."
)


def forget(
    names: list[str] = typer.Argument(metavar="NAME...", help="Nodes: NAME, or NAME#INCARNATION."),
    node: str = NODE,
    yes: int | None = YES,
    cluster: str = CLUSTER,
    timeout: float = PATIENCE,
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    as_json: bool = JSON,
) -> None:
    """Declare that missing nodes are gone for good: they count in no vote any more."""
    with errors_as_exits():
        security = credentials(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        found = asyncio.run(survey(node, cluster=cluster, timeout=timeout, **security))
        view = _confirmed(found, yes)
        asked = Administrator(
            [node], cluster=cluster, timeout=timeout, security=Security.given(**security)
        )
        _carry_out(asked, names, view)
        _tell(asyncio.run(survey(node, cluster=cluster, timeout=timeout, **security)), as_json)


def recover(
    node: str = NODE,
    yes: int | None = YES,
    cluster: str = CLUSTER,
    timeout: float = PATIENCE,
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    as_json: bool = JSON,
) -> None:
    """Let the nodes that are here go on: all that are missing are declared to be gone."""
    with errors_as_exits():
        security = credentials(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        found = asyncio.run(survey(node, cluster=cluster, timeout=timeout, **security))
        view = _confirmed(found, yes)
        asked = Administrator(
            [node], cluster=cluster, timeout=timeout, security=Security.given(**security)
        )
        _carry_out(asked, [], view)
        _tell(asyncio.run(survey(node, cluster=cluster, timeout=timeout, **security)), as_json)


def _confirmed(found: Survey, yes: int | None) -> int:
    """The number of the node view, which a person must type."""
    _show(found)
    if not found.missing:
        raise UsageError(f"no node of node view {found.view} is missing: there is nothing to do")
    progress.print(f"[bold]Warning:[/] {WARNING}", highlight=False)
    if yes is None:
        yes = typer.prompt("Type the number of the node view to go on", type=int, err=True)
    if yes != found.view:
        raise fail(f"the node view is {found.view}, not {yes}: nothing was done", BAD_INPUT)
    return found.view


def _carry_out(asked: Administrator, names: list[str], view: int) -> None:
    try:
        asyncio.run(asked.forget(names, view))
    except TimeoutError as error:
        raise fail(str(error), VIOLATED) from error


def _show(found: Survey) -> None:
    state = "has a majority" if found.has_majority else "has no majority"
    progress.print(
        f"node view {found.view} as {escape(found.asked)} sees it; this side {state}",
        highlight=False,
    )
    missing = Table("node", "address", "silent for", "votes", title="missing", title_justify="left")
    for one in found.missing:
        votes = "yes" if one.votes else "no"
        row = (one.identity, one.address, f"{one.silent_seconds:.1f} s", votes)
        missing.add_row(*map(escape, row))
    progress.print(missing)
    here = Table("node", "address", "node view", "groups", title="here", title_justify="left")
    for held in found.here:
        groups = held.trouble or ", ".join(held.groups) or "-"
        here.add_row(*map(escape, (held.identity, held.address, held.node_view or "-", groups)))
    progress.print(here)


def _tell(after: Survey, as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode(after).decode())
        return
    names = ", ".join(one.identity for one in after.here)
    console.print(
        escape(f"node view {after.view} is in force, with {names}"), highlight=False, soft_wrap=True
    )
