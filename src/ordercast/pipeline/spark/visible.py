"""Files that the driver sees and a worker does not: said with the name of the worker."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from ordercast.errors import TraceError
from ordercast.trace.layout import sealed_path


def refuse_invisible(files: Iterable[str | Path]) -> None:
    """In a task: raise `TraceError` for the first of these files that this machine cannot see.

    Only trace files that are there on the driver are handed to tasks. A segment may have been
    sealed since.
    """
    for file in files:
        path = Path(file)
        if not (path.exists() or sealed_path(path).exists()):
            raise TraceError(
                file,
                None,
                None,
                f"not visible on the Spark worker {socket.gethostname()}; large traces must lie "
                "where every worker sees them under the same path, for example in a shared folder",
            )
