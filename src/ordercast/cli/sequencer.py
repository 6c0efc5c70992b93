"""`ordercast sequencer`: a daemon that numbers the messages of groups it is not in."""

from __future__ import annotations

import os
from pathlib import Path

import typer

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
from ordercast.service.sequencer import SequencerDaemon
from ordercast.service.settings import SequencerSettings


def sequencer(
    listen: str | None = LISTEN,
    peers: str | None = PEERS,
    bootstrap: bool | None = BOOTSTRAP,
    config: Path | None = CONFIG,
    name: str | None = NAME,
    cluster: str | None = CLUSTER,
    advertise: str | None = ADVERTISE,
    http: str | None = typer.Option(
        None, metavar="HOST:PORT", help=f"{OF_DAEMONS['http']} Default: 127.0.0.1:9464."
    ),
    log_format: str | None = LOG_FORMAT,
    log_level: str | None = LOG_LEVEL,
    drain_timeout: float | None = typer.Option(None, help=OF_DAEMONS["drain_timeout"]),
    option: list[str] = OPTION,
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
    check: bool = CHECK,
) -> None:
    """Run a sequencer: a daemon that numbers the messages of groups that it is not in.

    Settings come from the file, from ORDERCAST_* variables, and from these options; later ones
    count. SIGTERM or Ctrl-C hands its groups to other sequencers first.
    """
    flags: dict[str, object] = {
        "listen": listen, "peers": peers, "bootstrap": bootstrap, "name": name,
        "cluster": cluster, "advertise": advertise, "http": http, "log_format": log_format,
        "log_level": log_level, "drain_timeout": drain_timeout, "insecure": insecure or None,
        "key_file": key_file, "tls_cert": tls_cert, "tls_key": tls_key, "tls_ca": tls_ca,
    }  # fmt: skip
    with errors_as_exits():
        loaded = load(SequencerSettings, config, os.environ, given(flags, option))
        settings = loaded.settings
        if check:
            show(loaded)
            return
        daemon = SequencerDaemon(settings, settings.given_key(key))
    install(settings.log_format, settings.log_level)
    raise typer.Exit(run(daemon))
