"""The Java process that Spark starts: what it says when it starts, and which signals end it.

Spark's launcher asks for a module by an option, and some versions of Java comment on it whenever
they start. No setting turns that off. Those two remarks are kept from people who cannot act on
them; all else that Java writes to standard error is passed on.

Java goes on while we end in good order. Who ends a service, a container or a pipeline often signals
all of its processes at once. Java would then be gone before we could stop what it does. It ends by
itself as soon as we have ended.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

_REMARKS = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"WARNING: package sun.security.action not in java.base",
)
_ignoring = False


@contextmanager
def without_java_remarks() -> Iterator[None]:
    """Whatever is started inside writes its standard error through our filter, also later on."""
    true_stderr = os.dup(2)
    source, sink = os.pipe()
    os.dup2(sink, 2)
    os.close(sink)
    Thread(target=_pass_on, args=(source, os.dup(true_stderr)), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(true_stderr, 2)
        os.close(true_stderr)


def _pass_on(source: int, target: int) -> None:
    """Copy line by line until every writer is gone."""
    with os.fdopen(source, "rb") as lines, os.fdopen(target, "wb", buffering=0) as out:
        for line in lines:
            if not line.startswith(_REMARKS):
                out.write(line)


@contextmanager
def java_ignores_sigterm() -> Iterator[None]:
    """Processes that PySpark starts inside take no notice of SIGTERM; it ignores Ctrl-C for them.

    That must be said between fork and exec, or a signal that comes meanwhile would be lost to us.
    """
    global _ignoring
    _ignoring = True
    try:
        yield
    finally:
        _ignoring = False


def _ignore_sigterm() -> None:
    if _ignoring:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_ignore_sigterm)
