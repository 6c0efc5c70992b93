"""What a sweep has done so far, on disk: it goes on where it stopped.

The counts of a protocol belong to one state of the sources: its own page, and all that decides a
run of any protocol. If one of these files has changed, its counts begin again.
"""

from __future__ import annotations

from hashlib import blake2b
from inspect import getfile
from pathlib import Path

import msgspec

from ordercast.protocols.registry import PROTOCOLS
from sweep.trial import Failure

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "core",
    "machinery",
    "reliability",
    "membership",
    "placement",
    "process",
    "views",
    "wire",
    "simulation",
    "trace/oracle",
)
MODULES = ("trace/holds.py", "trace/schema.py", "trace/watch.py")
SHARED = (*(f"src/ordercast/{path}" for path in (*PACKAGES, *MODULES)), "sweep")


class Ledger(msgspec.Struct):
    """Counts by "protocol/arena", and every failure."""

    sources: dict[str, str]  # per protocol: hash of the files that decide its runs
    done: dict[str, int] = {}  # seeds 0 to n - 1 are done
    failures: list[Failure] = []

    def runs(self, protocol: str) -> int:
        """Runs judged of this protocol, over all arenas."""
        return sum(n for pair, n in self.done.items() if pair.split("/")[0] == protocol)


def hash_of_sources(protocol: str) -> str:
    """Changes when a Python file changes on which its runs or their verdicts depend."""
    digest = blake2b(digest_size=16)
    for path in (_page(protocol), *map(Path, SHARED)):
        for file in sorted((ROOT / path).rglob("*.py")) or [ROOT / path]:
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _page(protocol: str) -> Path:
    """The file of a protocol, or its directory if it has one of its own."""
    page = Path(getfile(PROTOCOLS[protocol])).relative_to(ROOT)
    return page.parent if page.parent.parent.name == "protocols" else page


def load(path: Path) -> Ledger:
    """The ledger at `path`, without the counts of protocols whose sources have changed since."""
    now = {protocol: hash_of_sources(protocol) for protocol in PROTOCOLS}
    try:
        old = msgspec.json.decode(path.read_bytes(), type=Ledger)
    except (FileNotFoundError, msgspec.ValidationError):  # none yet, or of another form
        return Ledger(now)
    same = {protocol for protocol, sources in now.items() if old.sources.get(protocol) == sources}
    return Ledger(
        now,
        {pair: n for pair, n in old.done.items() if pair.split("/")[0] in same},
        [failure for failure in old.failures if failure.protocol in same],
    )


def save(path: Path, ledger: Ledger) -> None:
    """Write it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(ledger)))
    fresh.replace(path)
