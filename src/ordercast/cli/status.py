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
    _show(answer)


def _show(answer: dict[str, Any]) -> None:
    """The node may be of a later release, or lie: whatever it says has some form here."""
    for name, value in answer.items():
        if not isinstance(value, dict | list):
            console.print(f"{escape(name)}: {escape(str(value))}", highlight=False)
    stats = answer.get("stats")
    if isinstance(stats, dict) and (reason := stats.get("out_reason")):
        console.print(f"out_reason: {escape(str(reason))}", highlight=False, soft_wrap=True)
    for name, value in answer.items():
        if isinstance(value, dict):
            _show_figures(name, value)
        elif isinstance(value, list):
            _show_rows(name, [row for row in value if isinstance(row, dict)])


def _show_figures(title: str, figures: dict[str, Any]) -> None:
    """A table of its own for every group: the limits of a group are many."""
    groups = figures.get("groups")
    apart = groups if isinstance(groups, dict) else {}
    rows = [{"what": key, "now": one} for key, one in figures.items() if one is not apart]
    _show_rows(title, rows)
    for name, one in apart.items():
        if isinstance(one, dict):
            _show_figures(f"group {name}", one)


def _show_rows(title: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    table = Table(title=escape(title), title_justify="left")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for column in columns:
        table.add_column(escape(column), overflow="fold")
    for row in rows:
        table.add_row(*(escape(_plain(row.get(column, ""))) for column in columns))
    console.print(table)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items())
    return str(value)
