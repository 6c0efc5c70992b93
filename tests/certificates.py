"""Certificates for tests, made by the openssl command when they are needed."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ordercast.transport.tls import Tls

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """One that signs certificates of nodes, in a folder of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self.pem = self.folder / "ca.pem"
        self._openssl(
            "req", "-x509", *EC, "-subj", f"/CN={name}", "-days", "2",
            "-keyout", "ca.key", "-out", "ca.pem",
        )  # fmt: skip

    def sign(self, name: str, days: int = 1) -> Tls:
        """The files of a node; with negative days its certificate has expired."""
        self._openssl(
            "req", *EC, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr"
        )
        self._openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", str(days), "-out", f"{name}.pem",
        )  # fmt: skip
        return Tls(self.folder / f"{name}.pem", self.folder / f"{name}.key", self.pem)

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)


_folder = TemporaryDirectory(prefix="ordercast-certificates-")


@cache
def authority(name: str = "ours") -> Authority:
    """One for all tests of a process."""
    return Authority(Path(_folder.name), name)


@cache
def signed(name: str, by: str = "ours", days: int = 1) -> Tls:
    """The files of a node, made once."""
    return authority(by).sign(name, days)
