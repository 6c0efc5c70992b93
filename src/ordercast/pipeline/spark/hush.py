"""Keep two remarks of the Java virtual machine from people who cannot act on them.

Spark's launcher asks for a module by an option, and some versions of Java comment on it whenever
they start. No setting turns that off. All else that Java writes to standard error is passed on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

_REMARKS = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"WARNING: package sun.security.action not in java.base",
)


@contextmanager
def hushed() -> Iterator[None]:
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
