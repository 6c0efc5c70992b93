"""`ordercast groups`, `sequencers`, `migrate`, `drain`, `undrain`: which node numbers the messages
of which group, and which should; `groups refound`: an empty group waits no longer.

Each command asks any node of the cluster, which sends it on to the coordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.table import Table

from ordercast.cli.credentials import (
    INSECURE,
    KEY,
    KEY_FILE,
    TLS_CA,
    TLS_CERT,
    TLS_KEY,
    given_key,
    given_tls,
)
from ordercast.cli.exits import VIOLATED, console, errors_as_exits, escape, fail
from ordercast.runtime.placement import GroupRow, SequencerRow
from ordercast.service.administrator import Administrator
from ordercast.transport.security import Security

NODE = typer.Option(
    ["127.0.0.1:7700"], "--node", "--seed", metavar="HOST:PORT",
    help="Any node of the cluster. May be repeated: the first that answers is asked.",
)  # fmt: skip
CLUSTER = typer.Option("ordercast", help="The name of the cluster.")
ANSWER = typer.Option(5.0, "--timeout", help="Seconds to wait for an answer.")
PATIENCE = typer.Option(60.0, "--timeout", help="Seconds until it must be done.")
JSON = typer.Option(False, "--json", help="Print the result as JSON.")


groups = typer.Typer(invoke_without_command=True)


@groups.callback()
def list_groups(
    context: typer.Context,
    node: list[str] = NODE,
    cluster: str = CLUSTER,
    timeout: float = ANSWER,
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    as_json: bool = JSON,
) -> None:
    """List the groups of a cluster, and the node that numbers the messages of each."""
    if context.invoked_subcommand is not None:
        return
    with errors_as_exits():
        security = _security(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        asked = Administrator(node, cluster=cluster, timeout=timeout, security=security)
        rows = asyncio.run(asked.groups())
    _show("groups", GroupRow, rows, as_json)


@groups.command()
def refound(
    group: str = typer.Argument(help="The group, which has no members."),
    node: list[str] = NODE,
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
    """Let an empty group begin with the newest state that is here. What only absent nodes have of
    it is lost."""
    with errors_as_exits():
        security = _security(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        asked = Administrator(node, cluster=cluster, timeout=timeout, security=security)
        try:
            asyncio.run(asked.refound(group))
        except TimeoutError as error:
            raise fail(str(error), VIOLATED) from error
    _say(f"group {group} waits for nobody", {"refounded": group}, as_json)


def sequencers(
    node: list[str] = NODE,
    cluster: str = CLUSTER,
    timeout: float = ANSWER,
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    as_json: bool = JSON,
) -> None:
    """List the nodes that number messages, and how much each has to do."""
    with errors_as_exits():
        security = _security(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        asked = Administrator(node, cluster=cluster, timeout=timeout, security=security)
        rows = asyncio.run(asked.sequencers())
    _show("sequencers", SequencerRow, rows, as_json)


def migrate(
    group: str = typer.Argument(help="The group that moves."),
    to: str = typer.Option(..., "--to", metavar="NAME", help="The sequencer that gets it."),
    node: list[str] = NODE,
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
    """Let another sequencer number the messages of a group, while messages flow."""
    with errors_as_exits():
        security = _security(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        asked = Administrator(node, cluster=cluster, timeout=timeout, security=security)
        try:
            asyncio.run(asked.migrate(group, to))
        except TimeoutError as error:
            raise fail(str(error), VIOLATED) from error
    _say(f"{to} numbers the messages of group {group}", {"group": group, "to": to}, as_json)


def drain(
    sequencer: str = typer.Argument(help="The name of the sequencer that gives all its groups."),
    node: list[str] = NODE,
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
    """Empty a sequencer for maintenance: the others take its groups, and it gets no new ones."""
    with errors_as_exits():
        security = _security(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        asked = Administrator(node, cluster=cluster, timeout=timeout, security=security)
        try:
            asyncio.run(asked.drain(sequencer))
        except TimeoutError as error:
            raise fail(str(error), VIOLATED) from error
    _say(f"{sequencer} has no groups; it may be stopped", {"drained": sequencer}, as_json)


def undrain(
    sequencer: str = typer.Argument(help="The name of the sequencer that may have groups again."),
    node: list[str] = NODE,
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
    """End what `drain` began: that sequencer gets groups again."""
    with errors_as_exits():
        security = _security(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        asked = Administrator(node, cluster=cluster, timeout=timeout, security=security)
        try:
            asyncio.run(asked.undrain(sequencer))
        except TimeoutError as error:
            raise fail(str(error), VIOLATED) from error
    _say(f"{sequencer} may have groups again", {"undrained": sequencer}, as_json)


def _security(
    key_file: Path | None,
    key: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
    insecure: bool,
) -> Security:
    tls = given_tls(tls_cert, tls_key, tls_ca)
    return Security.given(given_key(key_file, key), tls, insecure)


# -- what is printed ------------------------------------------------------------------------------


def _say(text: str, result: dict[str, str], as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode(result).decode())
    else:
        console.print(escape(text), highlight=False, soft_wrap=True)


def _show(
    title: str,
    kind: type[msgspec.Struct],
    rows: Sequence[msgspec.Struct],
    as_json: bool,
) -> None:
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(rows)).decode())
        return
    if not rows:
        console.print(f"no {title}", highlight=False)
        return
    table = Table(title=title, title_justify="left")
    for column in kind.__struct_fields__:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(_plain(value)) for value in msgspec.structs.astuple(row)))
    console.print(table)


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value) or "-"
