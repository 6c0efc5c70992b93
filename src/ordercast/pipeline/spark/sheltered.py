"""Java goes on while we end in good order.

Who ends a service, a container or a pipeline often signals all of its processes at once. Java would
then be gone before we could stop what it does. It ends by itself as soon as we have ended.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_sheltering = False


@contextmanager
def sheltered() -> Iterator[None]:
    """Processes that PySpark starts inside take no notice of SIGTERM; it ignores Ctrl-C for them.

    That must be said between fork and exec, or a signal that comes meanwhile would be lost to us.
    """
    global _sheltering
    _sheltering = True
    try:
        yield
    finally:
        _sheltering = False


def _ignore_sigterm() -> None:
    if _sheltering:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_ignore_sigterm)
