"""`ordercast node`: a member of groups from the command line, at a site if need be."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import typer

from ordercast.cli.conversation import lines_of_input, tell
from ordercast.cli.credentials import INSECURE, KEY, KEY_FILE, TLS_CA, TLS_CERT, TLS_KEY
from ordercast.cli.daemons import (
    ADVERTISE,
    BOOTSTRAP,
    CHECK,
    CLUSTER,
    CONFIG,
    LISTEN,
    LOG_FORMAT,
    LOG_LEVEL,
    NAME,
    OPTION,
    PEERS,
    given,
    run,
    show,
)
from ordercast.cli.exits import errors_as_exits
from ordercast.cli.meanings import OF_DAEMONS
from ordercast.service.layers import load
from ordercast.service.logs import install
from ordercast.service.member import MemberDaemon
from ordercast.service.settings import NodeSettings


def node(
    group: str | None = typer.Option(None, metavar="NAME,...", help=OF_DAEMONS["group"]),
    order: str | None = typer.Option(None, help=OF_DAEMONS["order"]),
    protocol: str | None = typer.Option(None, help=OF_DAEMONS["protocol"]),
    site: str | None = typer.Option(None, help=OF_DAEMONS["site"]),
    gateway: bool | None = typer.Option(None, "--gateway", help=OF_DAEMONS["gateway"]),
    delivery_level: str | None = typer.Option(None, help=OF_DAEMONS["delivery_level"]),
    listen: str | None = LISTEN,
    peers: str | None = PEERS,
    bootstrap: bool | None = BOOTSTRAP,
    config: Path | None = CONFIG,
    name: str | None = NAME,
    cluster: str | None = CLUSTER,
    advertise: str | None = ADVERTISE,
    trace: Path | None = typer.Option(None, metavar="DIR", help=OF_DAEMONS["trace"]),
    http: str | None = typer.Option(
        None, metavar="HOST:PORT", help=f"{OF_DAEMONS['http']} Default: off."
    ),
    log_format: str | None = LOG_FORMAT,
    log_level: str | None = LOG_LEVEL,
    option: list[str] = OPTION,
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    check: bool = CHECK,
) -> None:
    """Run a member of groups: it prints what they deliver, and sends the lines of its input.

    Settings come from the file, from ORDERCAST_* variables, and from these options; later ones
    count. SIGTERM or Ctrl-C leaves in order; the end of the input does not end it.
    """
    flags: dict[str, object] = {
        "group": group, "order": order, "protocol": protocol, "site": site, "gateway": gateway,
        "delivery_level": delivery_level, "listen": listen, "peers": peers,
        "bootstrap": bootstrap, "name": name, "cluster": cluster, "advertise": advertise,
        "trace": trace, "http": http, "log_format": log_format, "log_level": log_level,
        "insecure": insecure or None, "key_file": key_file, "tls_cert": tls_cert,
        "tls_key": tls_key, "tls_ca": tls_ca,
    }  # fmt: skip
    with errors_as_exits():
        loaded = load(NodeSettings, config, os.environ, given(flags, option))
        settings = loaded.settings
        if check:
            show(loaded)
            return
        told = partial(tell, name_groups=len(settings.group) > 1)
        daemon = MemberDaemon(settings, settings.given_key(key), tell=told, lines=lines_of_input)
    install(settings.log_format, settings.log_level)
    raise typer.Exit(run(daemon))
