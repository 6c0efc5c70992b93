"""What the programs wrote, read by the judge's own reader.

A log belongs to one life of a name: one process. Lines are `[seconds, kind, ...]`; seconds are the
monotonic clock, one for all processes of a machine.

    start NAME LIFE                the program runs
    start failed KIND TEXT         its node did not find the cluster; it tries again
    up INCARNATION                 its node is in the cluster
    join G | joined G | join failed G KIND TEXT
    leave G | left G | leave failed G KIND TEXT
    send G MESSAGE CRC INCARNATION           before the call
    sent MESSAGE INCARNATION | unsent MESSAGE KIND TEXT     after it
    got G SENDER MESSAGE CRC       taken from the stream
    view G NUMBER MEMBERS JOINED LEFT INCARNATION
    merge G SIDES CHOSEN
    out KIND TEXT VIEW MISSING     the stream raised it, with whom it lacks; it is read on
    node NUMBER MEMBERS COORDINATOR NUMBERED INCARNATION    the node's own view, when it changes
    failed WHERE TEXT              something was raised that no application has to expect
    closing | closed | stream ended
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Entry = list[Any]

SUFFIX = ".log"


@dataclass
class Log:
    """What one process wrote, in its order."""

    name: str
    life: int
    entries: list[Entry] = field(default_factory=list)

    @property
    def process(self) -> str:
        return f"{self.name}.{self.life}"

    def of_kind(self, *kinds: str) -> Iterable[Entry]:
        return (entry for entry in self.entries if entry[1] in kinds)


class LogFile:
    """A log that is still written: `read` takes what has come since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        name, life = path.name.removesuffix(SUFFIX).split(".")
        self.log = Log(name, int(life))
        self._read = 0

    def read(self) -> list[Entry]:
        """New entries; a line that is not finished is left for the next time."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        new = [json.loads(line) for line in whole.splitlines()]
        self.log.entries += new
        return new


def read_logs(folder: Path) -> list[Log]:
    """All logs of a run."""
    logs = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        file = LogFile(path)
        file.read()
        logs.append(file.log)
    return logs
