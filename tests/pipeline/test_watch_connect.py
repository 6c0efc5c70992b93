"""A watch needs a classic session: what a Connect server cannot do is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ordercast.errors import UsageError
from ordercast.pipeline.streaming import Watcher, WatchOptions, start_watch


class ConnectSession:
    """Looks like a session of Spark Connect, and can do nothing."""

    __module__ = "pyspark.sql.connect.session"


@pytest.mark.parametrize("start", [start_watch, Watcher])
def test_a_watch_on_a_connect_session_is_refused_and_nothing_is_written(
    tmp_path: Path, start: Any
) -> None:
    with pytest.raises(UsageError, match="Spark Connect"):
        start(ConnectSession(), tmp_path, tmp_path / "checkpoint", WatchOptions())
    assert not list(tmp_path.iterdir())
