"""What commands that run a daemon share: options, how settings are shown, and the exit code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.table import Table

from ordercast.cli.exits import BAD_INPUT, UNREACHABLE, console, escape
from ordercast.cli.meanings import OF_DAEMONS
from ordercast.errors import JoinTimeout, NodeEnded, OrdercastError, PeerError
from ordercast.service.daemon import Daemon
from ordercast.service.layers import Loaded, S, keys_of

log = logging.getLogger("ordercast.service")

LISTEN = typer.Option(
    None, metavar="HOST:PORT", help=f"{OF_DAEMONS['listen']} Default: 127.0.0.1:7700."
)
PEERS = typer.Option(None, metavar="HOST:PORT,...", help=OF_DAEMONS["peers"])
BOOTSTRAP = typer.Option(None, "--bootstrap", help=OF_DAEMONS["bootstrap"])
CONFIG = typer.Option(
    None, envvar="ORDERCAST_CONFIG", metavar="FILE", help="TOML file with the same settings."
)
NAME = typer.Option(None, help=OF_DAEMONS["name"])
CLUSTER = typer.Option(None, help=OF_DAEMONS["cluster"])
ADVERTISE = typer.Option(None, metavar="HOST:PORT", help=OF_DAEMONS["advertise"])
LOG_FORMAT = typer.Option(None, help=OF_DAEMONS["log_format"])
LOG_LEVEL = typer.Option(None, help=OF_DAEMONS["log_level"])
OPTION = typer.Option(
    [], metavar="NAME=VALUE", help=f"{OF_DAEMONS['node']} Example: heartbeat_ms=100."
)
CHECK = typer.Option(
    False, "--check", help="Start nothing: show the settings, and where each comes from."
)


def given(flags: dict[str, object], options: list[str]) -> dict[str, object]:
    """The flags that were given, files as text, and the options of the node."""
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in flags.items()}
    found = {key: value for key, value in texts.items() if value is not None}
    return found | _node_options(options)


def _node_options(lines: list[str]) -> dict[str, str]:
    options = {}
    for line in lines:
        option, equals, value = line.partition("=")
        if not equals or not option:
            raise ValueError(f"--option {line!r}: write NAME=VALUE, as heartbeat_ms=100")
        options[f"node.{option}"] = value
    return options


def run(daemon: Daemon) -> int:
    """Until it ends; the exit code. From here on, what goes wrong is told in the log."""
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


def show(loaded: Loaded[S]) -> None:
    """Every setting, and where it comes from."""
    table = Table(title="settings", title_justify="left")
    for column in ("key", "value", "from"):
        table.add_column(column, overflow="fold")
    settings = msgspec.structs.replace(loaded.settings, name=loaded.settings.node_name)
    for key in keys_of(type(settings)):
        is_option = key.startswith("node.")
        if not is_option or key in loaded.places:
            value = settings.node[key[5:]] if is_option else getattr(settings, key)
            shown = ", ".join(value) if isinstance(value, tuple) else str(value)
            table.add_row(key, escape(shown), escape(loaded.places.get(key, "default")))
    console.print(table)
