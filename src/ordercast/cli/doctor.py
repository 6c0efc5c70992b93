"""`ordercast doctor`: why a node cannot form or join a group, and what to do about it."""

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
    given_key,
    given_tls,
)
from ordercast.cli.exits import (
    BAD_INPUT,
    UNREACHABLE,
    VIOLATED,
    console,
    errors_as_exits,
    escape,
)
from ordercast.cli.meanings import OF_NODES
from ordercast.runtime.diagnosis.diagnose import diagnose
from ordercast.runtime.diagnosis.findings import Diagnosis, Finding
from ordercast.runtime.diagnosis.here import check_files
from ordercast.runtime.diagnosis.subject import PATIENCE, Subject
from ordercast.transport.discovery import Discovery

COLOURS = {"fault": "bold red", "warning": "bold yellow", "note": "bold cyan"}


def doctor(
    addresses: list[str] = typer.Argument(
        None, metavar="ADDRESS", help="HOST:PORT of the nodes that should be one cluster."
    ),
    name: str | None = typer.Option(None, help="Name of your node: checks that it is free."),
    cluster: str = typer.Option("ordercast", help=OF_NODES["cluster"]),
    bind: str | None = typer.Option(
        None,
        metavar="HOST:PORT",
        help="Address of your node: checks that others can connect to it.",
    ),
    group: str | None = typer.Option(None, help="Group that your node joins."),
    order: str | None = typer.Option(None, help="Order that it asks for."),
    protocol: str | None = typer.Option(None, help="Protocol that it asks for."),
    heartbeat_ms: int | None = typer.Option(None, help=OF_NODES["heartbeat_ms"]),
    suspect_ms: int | None = typer.Option(None, help=OF_NODES["suspect_ms"]),
    option: list[str] = typer.Option(
        [], metavar="NAME=VALUE", help="Any other option of your node, as max_message=2097152."
    ),
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    discover: str | None = typer.Option(
        None, metavar="GROUP:PORT", help="Look for nodes in this multicast group too."
    ),
    timeout: float = typer.Option(PATIENCE, help="Seconds that each step gets."),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> None:
    """Tell why a node cannot form or join a group, and what to do about it."""
    with errors_as_exits():
        diagnosis = Diagnosis()
        options = _options(option, heartbeat_ms=heartbeat_ms, suspect_ms=suspect_ms)
        tls = given_tls(tls_cert, tls_key, tls_ca)
        security = check_files(given_key(key_file, key), tls, insecure, diagnosis)
        if security is not None:
            subject = _subject(
                name=name, cluster=cluster, bind=bind, group=group, order=order,
                protocol=protocol, options=options, security=security, patience=timeout,
            )  # fmt: skip
            where = None if discover is None else Discovery(discover)
            asyncio.run(diagnose(addresses or [], subject, diagnosis, discover=where))
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(diagnosis.as_data())).decode())
    else:
        _show(diagnosis)
    raise typer.Exit(exit_code(diagnosis))


def exit_code(diagnosis: Diagnosis) -> int:
    """0 healthy; else what kept us: our input, the way there, or something that was found."""
    if diagnosis.healthy:
        return 0
    if diagnosis.answered:
        return VIOLATED
    codes = {finding.code for finding in diagnosis.findings if finding.level == "fault"}
    if codes == {"address"}:
        return BAD_INPUT
    return VIOLATED if "own_certificate" in codes else UNREACHABLE


# -- what was given -------------------------------------------------------------------------------


def _subject(**about: Any) -> Subject:
    try:
        return Subject(**about)
    except TypeError as error:  # text where an option of a node is a number
        raise ValueError(str(error)) from None


def _options(lines: list[str], **given: int | None) -> dict[str, Any]:
    """The options of the node; numbers as numbers."""
    options: dict[str, Any] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or not name:
            raise ValueError(f"--option {line!r}: write NAME=VALUE, as max_message=2097152")
        options[name] = value.split(",") if name == "voters" else _value(value)
    return options | {name: value for name, value in given.items() if value is not None}


def _value(text: str) -> object:
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# -- what was found -------------------------------------------------------------------------------


def _show(diagnosis: Diagnosis) -> None:
    for number, finding in enumerate(diagnosis.worst_first(), 1):
        _show_finding(number, finding)
    _show_rows("Checks that passed", ("check", "where", "seen"), diagnosis.passed)
    _show_rows("Not checked", ("check", "why"), diagnosis.skipped)
    _show_verdict(diagnosis)


def _show_finding(number: int, finding: Finding) -> None:
    title = f"[{COLOURS[finding.level]}]{number}. {finding.level}[/] at {escape(finding.where)}"
    console.print(f"{title} ({finding.code})", highlight=False, soft_wrap=True)
    console.print(f"   seen:  {escape(finding.seen)}", highlight=False, soft_wrap=True)
    console.print(f"   to do: {escape(finding.cure)}", highlight=False, soft_wrap=True)
    console.print()


def _show_rows(title: str, columns: tuple[str, ...], rows: list[Any]) -> None:
    if not rows:
        return
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(getattr(row, column)) for column in columns))
    console.print(table)


def _show_verdict(diagnosis: Diagnosis) -> None:
    levels = [finding.level for finding in diagnosis.findings]
    counted = [_counted(levels.count(level), level) for level in COLOURS if level in levels]
    nodes = f"{_counted(diagnosis.answered, 'node')} answered"
    if diagnosis.healthy:
        console.print(f"[bold green]healthy[/]: {nodes}", highlight=False)
    else:
        console.print(f"[bold]{', '.join(counted)}[/]; {nodes}", highlight=False)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
