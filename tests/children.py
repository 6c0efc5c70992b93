"""Processes that tests start."""

from __future__ import annotations

import signal


def heed_signals() -> None:
    """In a child, before it begins: a suite in the background, or under nohup, ignores some
    signals, and its children would too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
