"""`ordercast sequencer`: a daemon that numbers the messages of groups it is not in."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.table import Table

from ordercast.cli.credentials import INSECURE, KEY, KEY_FILE, TLS_CA, TLS_CERT, TLS_KEY
from ordercast.cli.exits import (
    BAD_INPUT,
    UNREACHABLE,
    console,
    errors_as_exits,
    escape,
)
from ordercast.errors import JoinTimeout, NodeEnded, OrdercastError, PeerError
from ordercast.service.daemon import Daemon
from ordercast.service.layers import KEYS, Loaded, load
from ordercast.service.logs import install

log = logging.getLogger("ordercast.service")


def sequencer(
    listen: str | None = typer.Option(
        None, metavar="HOST:PORT", help="Where other nodes connect to; default: 127.0.0.1:7700."
    ),
    peers: str | None = typer.Option(
        None, metavar="HOST:PORT,...", help="Nodes of the cluster; any that runs will do."
    ),
    bootstrap: bool | None = typer.Option(
        None, "--bootstrap", help="Start the cluster, if none of the peers runs."
    ),
    config: Path | None = typer.Option(
        None, envvar="ORDERCAST_CONFIG", metavar="FILE", help="TOML file with the same settings."
    ),
    name: str | None = typer.Option(None, help="How the cluster knows it."),
    cluster: str | None = typer.Option(None, help="The name of the cluster."),
    advertise: str | None = typer.Option(
        None, metavar="HOST:PORT", help="Where others reach it, if not at --listen."
    ),
    http: str | None = typer.Option(
        None, metavar="HOST:PORT", help="Health and metrics; default: 127.0.0.1:9464; or off."
    ),
    log_format: str | None = typer.Option(None, help="logfmt or json."),
    log_level: str | None = typer.Option(None, help="debug, info, warning or error."),
    drain_timeout: float | None = typer.Option(
        None, help="Seconds that a stop gives to hand its groups to others."
    ),
    option: list[str] = typer.Option(
        [], metavar="NAME=VALUE", help="A limit or delay of the node, as heartbeat_ms=100."
    ),
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    check: bool = typer.Option(
        False, "--check", help="Only show the settings, and where each comes from."
    ),
) -> None:
    """Run a sequencer: a daemon that numbers the messages of groups that it is not in.

    Settings come from the file, from ORDERCAST_* variables, and from these options; later ones
    count. SIGTERM or Ctrl-C hands its groups to other sequencers first.
    """
    files = {"key_file": key_file, "tls_cert": tls_cert, "tls_key": tls_key, "tls_ca": tls_ca}
    flags: dict[str, object] = {
        "listen": listen, "peers": peers, "bootstrap": bootstrap, "name": name,
        "cluster": cluster, "advertise": advertise, "http": http, "log_format": log_format,
        "log_level": log_level, "drain_timeout": drain_timeout, "insecure": insecure or None,
        **{option: None if file is None else str(file) for option, file in files.items()},
    }  # fmt: skip
    with errors_as_exits():
        flags |= _node_options(option)
        given = {flag: value for flag, value in flags.items() if value is not None}
        loaded = load(config, os.environ, given)
        if check:
            _show(loaded)
            return
        daemon = Daemon(loaded.settings, loaded.settings.given_key(key))
    install(loaded.settings.log_format, loaded.settings.log_level)
    raise typer.Exit(_run(daemon))


def _node_options(lines: list[str]) -> dict[str, str]:
    options = {}
    for line in lines:
        option, equals, value = line.partition("=")
        if not equals or not option:
            raise ValueError(f"--option {line!r}: write NAME=VALUE, as heartbeat_ms=100")
        options[f"node.{option}"] = value
    return options


def _run(daemon: Daemon) -> int:
    """The exit code. From here on, what goes wrong is told in the log."""
    try:
        _in_loop(daemon.run())
    except (JoinTimeout, NodeEnded, PeerError, ConnectionError, TimeoutError) as error:
        log.error("%s", error)
        return UNREACHABLE
    except (OrdercastError, ValueError, TypeError, OSError) as error:
        log.error("%s", error)
        return BAD_INPUT
    return 0


def _in_loop(work: Coroutine[Any, Any, None]) -> None:
    """On uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


def _show(loaded: Loaded) -> None:
    table = Table(title="settings", title_justify="left")
    for column in ("key", "value", "from"):
        table.add_column(column, overflow="fold")
    settings = msgspec.structs.replace(loaded.settings, name=loaded.settings.node_name)
    for key in KEYS:
        is_option = key.startswith("node.")
        if not is_option or key in loaded.places:
            value = settings.node[key[5:]] if is_option else getattr(settings, key)
            shown = ", ".join(value) if isinstance(value, tuple) else str(value)
            table.add_row(key, escape(shown), escape(loaded.places.get(key, "default")))
    console.print(table)
