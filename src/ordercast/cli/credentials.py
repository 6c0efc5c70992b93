"""The options of every command that talks to nodes: the key of the cluster, and certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ordercast.cli.meanings import OF_DAEMONS
from ordercast.transport.tls import Tls

KEY_FILE = typer.Option(None, help=OF_DAEMONS["key_file"])
KEY = typer.Option(None, envvar="ORDERCAST_KEY", hidden=True)  # an argument could be seen by all
TLS_CERT = typer.Option(None, help=OF_DAEMONS["tls_cert"])
TLS_KEY = typer.Option(None, help=OF_DAEMONS["tls_key"])
TLS_CA = typer.Option(None, help=OF_DAEMONS["tls_ca"])
INSECURE = typer.Option(False, help=OF_DAEMONS["insecure"])


def given_key(key_file: Path | None, key: str | None) -> str | None:
    """The key of the file, or else of the environment. Space around it is no part of it."""
    if key_file is None:
        return key
    return key_file.read_text(encoding="utf-8").strip()


def given_tls(certificate: Path | None, key: Path | None, authority: Path | None) -> Tls | None:
    """All three files, or none."""
    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None or authority is None:
        raise ValueError("TLS needs all three: --tls-cert, --tls-key and --tls-ca")
    return Tls(certificate, key, authority)


def credentials(
    key_file: Path | None,
    key: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
    insecure: bool,
) -> dict[str, Any]:
    """As `Node` and `query_status` take them."""
    tls = given_tls(tls_cert, tls_key, tls_ca)
    return {"key": given_key(key_file, key), "tls": tls, "insecure": insecure}
