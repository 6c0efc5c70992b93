"""A process that has imported everything, and forks a participant whenever one is wanted.

    python -m chaos.nursery

Orders come as JSON lines on standard input, and each is answered by a line on standard output:

    {"bear": {settings}, "net": "/proc/PID/ns/net", "errors": PATH}   {"pid": PID}
    {"ended": true}                                      {"ended": {PID: exit status, ...}}

A child enters the network namespace of its member; with a limited disk it gets a mount namespace
of its own, with a small tmpfs where its trace goes. Children die with this process, and it ends
with its input.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from chaos import wall_clock

wall_clock.install()  # before ordercast takes time_ns by name

import msgspec  # noqa: E402

# A node takes these when it closes and seals its trace: half a second of a processor each time.
import pandas  # noqa: E402, F401
import pyarrow.parquet  # noqa: E402, F401

import ordercast.trace.tables  # noqa: E402, F401
from chaos import participant  # noqa: E402

CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Serve until the input ends."""
    gc.freeze()  # what is imported stays shared with the children
    for line in sys.stdin:
        order = json.loads(line)
        answer = _bear(order) if "bear" in order else {"ended": _ended()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _bear(order: Mapping[str, Any]) -> dict[str, int]:
    pid = os.fork()
    if pid:
        return {"pid": pid}
    status = 1
    try:
        _become(order)
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _become(order: Mapping[str, Any]) -> None:
    """In the child: be the participant, where it belongs."""
    _check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")
    settings = msgspec.convert(order["bear"], participant.Settings)
    _redirect(order["errors"])
    with open(order["net"], "rb") as namespace:
        _check(libc.setns(namespace.fileno(), 0), "setns")
    if settings.disk_kib:
        _small_disk(settings.options["trace"], settings.disk_kib)
    participant.run(settings)


def _redirect(errors: str) -> None:
    """Standard input is the nursery's own, standard output its answers."""
    with open(errors, "ab") as file, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def _small_disk(folder: str, kib: int) -> None:
    """Mount a tmpfs of that size over the folder, for this process alone."""
    os.makedirs(folder, exist_ok=True)
    _check(libc.unshare(CLONE_NEWNS), "unshare")
    _check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount --make-rprivate")
    _check(
        libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, f"size={kib}k".encode()), "mount tmpfs"
    )


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _ended() -> dict[int, int]:
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


if __name__ == "__main__":
    main()
