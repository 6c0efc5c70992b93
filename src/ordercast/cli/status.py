"""`ordercast status`: ask a running node how it is."""

from __future__ import annotations

import asyncio
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
    credentials,
)
from ordercast.cli.exits import UNREACHABLE, console, errors_as_exits, escape, fail
from ordercast.runtime.reasons import why_unreachable
from ordercast.runtime.status import query_status


def status(
    address: str = typer.Argument(help="HOST:PORT of any node."),
    cluster: str = typer.Option("ordercast", help="The name of the cluster."),
    timeout: float = typer.Option(5.0, help="Seconds to wait for an answer."),
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> None:
    """Show the members, groups and limits of a running node."""
    with errors_as_exits():
        security = credentials(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        try:
            answer = asyncio.run(
                query_status(address, cluster=cluster, timeout=timeout, **security)
            )
        except OSError as error:
            reason = why_unreachable(error)
            text = f"no node answers at {address} ({reason}); is it running, at this address?"
            raise fail(text, UNREACHABLE) from error
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(answer)).decode())
        return
    for name, value in answer.items():
        if not isinstance(value, dict | list):
            console.print(f"{name}: {escape(str(value))}", highlight=False)
    if reason := answer.get("stats", {}).get("out_reason"):
        console.print(f"out_reason: {escape(reason)}", highlight=False, soft_wrap=True)
    for name, value in answer.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            _show_rows(name, value)
        elif isinstance(value, dict):
            _show_figures(name, value)


def _show_figures(title: str, figures: dict[str, Any]) -> None:
    """A table of its own for every group: the limits of a group are many."""
    groups = figures.pop("groups", {})
    _show_rows(title, [{"what": key, "now": one} for key, one in figures.items()])
    for name, one in groups.items():
        _show_figures(f"group {escape(name)}", one)


def _show_rows(title: str, rows: list[dict[str, object]]) -> None:
    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(_plain(value)) for value in row.values()))
    console.print(table)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items())
    return str(value)
