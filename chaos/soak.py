"""python -m chaos.soak: one cluster for hours, with restarts. Memory and descriptors stay flat.

Some nodes stay from the beginning to the end. The others are killed, asked to leave, or stopped for
a while, again and again, and come back under their names. All are in groups of several orders and
send all the time. Every ten seconds the memory, descriptors and threads of those who stay are read
from the operating system. What must hold:

    flat        in the last quarter of the time, a process that stayed has at most 5 percent and
                4 MiB more memory than in the second, 8 more descriptors, and no more threads
    agreement   all who saw two views of a group after each other got the same messages between
                them, in the same order where it is total
    no end      no process ends that was not killed or asked to

Exit code 1 if something does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import msgspec
from rich.console import Console

from chaos.soaker import Settings

STAY = ("a", "b", "c")
COME_AND_GO = ("x", "y")
GROUPS: dict[str, dict[str, Any]] = {
    "total": {"order": "total"},
    "safe": {"order": "total", "resilience": 1},
    "hybrid": {"order": "hybrid"},
    "causal": {"order": "causal"},
    "fifo": {"order": "fifo"},
    "blocks": {"order": "causal-total"},
}
IN_ORDER = ("total", "safe", "hybrid", "blocks")
SAMPLE_SECONDS = 10.0
AWAY_SECONDS = (0.2, 6.0)  # how long a node is gone
BETWEEN_SECONDS = (2.0, 12.0)  # from one fault to the next
CLOSE_SECONDS = 30.0
MORE_MEMORY, MORE_BYTES, MORE_DESCRIPTORS = 1.05, 4 << 20, 8

Usage = tuple[int, int, int]  # bytes, descriptors, threads

console = Console(highlight=False, soft_wrap=True)


class Process:
    """One start of a name."""

    def __init__(self, settings: Settings, folder: Path, start: int) -> None:
        self.name = settings.name
        self.path = folder / f"{self.name}.{start}.jsonl"
        with self.path.open("wb") as lines, self.path.with_suffix(".err").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "chaos.soaker", msgspec.json.encode(settings).decode()],
                stdin=subprocess.PIPE,
                stdout=lines,
                stderr=errors,
            )
        self.asked = False  # to leave, or killed

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> int | None:
        """Its exit status, if it has one."""
        return self._process.poll()

    def strike(self, kind: str) -> None:
        """Kill it, ask it to leave, or stop it."""
        if kind == "pause":
            self._process.send_signal(signal.SIGSTOP)
            return
        self.asked = True
        if kind == "kill":
            self._process.kill()
        else:
            self.close()

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Ask it to leave in order."""
        self.asked = True
        assert self._process.stdin is not None
        self._process.stdin.close()

    def usage(self) -> Usage:
        """Memory, descriptors and threads, as the operating system counts them."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        fields = dict(line.split(":", 1) for line in status.splitlines())
        descriptors = len(os.listdir(f"/proc/{self.pid}/fd"))
        return int(fields["VmRSS"].split()[0]) * 1024, descriptors, int(fields["Threads"])

    def lines(self) -> list[list[Any]]:
        """What it told. A killed process may have told half a line."""
        whole = self.path.read_text(encoding="utf-8").rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]


class Soak:
    """The cluster, what is done to it, and what was seen."""

    def __init__(self, folder: Path, rate: float, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.rate = rate
        self.faults: dict[str, int] = defaultdict(int)
        self.samples: dict[str, list[Usage]] = {name: [] for name in STAY}
        self.complaints: list[str] = []
        self._rng = Random(seed)
        ports = _free_ports(len(STAY) + len(COME_AND_GO))
        self._address = {
            name: f"127.0.0.1:{port}" for name, port in zip(STAY + COME_AND_GO, ports, strict=True)
        }
        self._started: list[Process] = []
        self._now: dict[str, Process] = {}

    def run(self, minutes: float) -> None:
        """From the first process to the last."""
        end = time.monotonic() + 60 * minutes
        for name in self._address:
            self._start(name)
        sample, fault = time.monotonic(), time.monotonic() + 5
        back: list[tuple[float, str, str]] = []  # when, who, after what
        while (now := time.monotonic()) < end:
            if now >= sample:
                sample += SAMPLE_SECONDS
                self._look()
            if now >= fault:
                back += self._strike(now, {name for _, name, _ in back})
                fault = now + self._rng.uniform(*BETWEEN_SECONDS)
            for entry in [entry for entry in back if entry[0] <= now]:
                back.remove(entry)
                self._bring_back(entry[1], entry[2])
            time.sleep(0.05)
        for _, name, kind in back:
            self._bring_back(name, kind)
        self._close()

    def _start(self, name: str) -> None:
        start = sum(process.name == name for process in self._started) + 1
        others = [address for other, address in self._address.items() if other != name]
        traced = {"trace": str(self.folder / "trace")} if name == STAY[0] else {}
        settings = Settings(
            name=name,
            place={"bind": self._address[name], "bootstrap": True, "seeds": others},
            options={"voter": name in STAY, **traced},
            groups=GROUPS,
            in_order=IN_ORDER,
            rate=self.rate,
            size=200,
        )
        self._now[name] = Process(settings, self.folder, start)
        self._started.append(self._now[name])

    def _look(self) -> None:
        for name in STAY:
            if self._now[name].ended() is None:
                self.samples[name].append(self._now[name].usage())
        for process in self._started:
            if process.ended() is not None and not process.asked:
                process.asked = True
                self.complaints.append(f"{process.name} ended by itself: {process.ended()}")

    def _strike(self, now: float, away: set[str]) -> list[tuple[float, str, str]]:
        there = [name for name in COME_AND_GO if name not in away]
        if not there:
            return []
        name, kind = self._rng.choice(there), self._rng.choice(("kill", "kill", "leave", "pause"))
        self.faults[kind] += 1
        self._now[name].strike(kind)
        return [(now + self._rng.uniform(*AWAY_SECONDS), name, kind)]

    def _bring_back(self, name: str, kind: str) -> None:
        process = self._now[name]
        if kind == "pause":
            process.go_on()
            return
        deadline = time.monotonic() + CLOSE_SECONDS
        while process.ended() is None:  # it is leaving, and its address is taken
            if time.monotonic() > deadline:
                self.complaints.append(f"{name} did not leave within {CLOSE_SECONDS:.0f} s")
                process.strike("kill")
            time.sleep(0.05)
        self._start(name)

    def _close(self) -> None:
        for process in (self._now[name] for name in reversed(self._address)):
            process.close()
            deadline = time.monotonic() + CLOSE_SECONDS
            while process.ended() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            if process.ended() != 0:
                self.complaints.append(f"{process.name} did not close in order: {process.ended()}")
                process.strike("kill")

    # -- what must hold ---------------------------------------------------------------------------

    def judge(self) -> None:
        """Complaints about what was seen."""
        for name, samples in self.samples.items():
            self.complaints += [f"{name}: {words}" for words in not_flat(samples)]
        self.complaints += disagreements({p.path.stem: p.lines() for p in self._started})

    def tell(self) -> None:
        """Figures for people."""
        for name, samples in self.samples.items():
            early, late = quarters(samples)
            grew = [f"{a:.1f} -> {b:.1f}" for a, b in zip(early, late, strict=True)]
            grew[0] = f"{early[0] / 2**20:.1f} -> {late[0] / 2**20:.1f} MiB"
            console.print(f"{name}: {grew[0]}, {grew[1]} descriptors, {grew[2]} threads")
        views = [e for p in self._started for e in p.lines() if e[0] == "view"]
        messages = sum(entry[4] or 0 for entry in views)
        console.print(
            f"{len(self._started)} starts, faults {dict(self.faults)}, {len(views):,} views, "
            f"{messages:,} deliveries compared; complaints: {len(self.complaints)}"
        )
        for words in self.complaints:
            console.print(words, style="red", markup=False)


def quarters(samples: list[Usage]) -> tuple[list[float], list[float]]:
    """Medians of the second quarter, and of the last."""
    n = len(samples)
    parts = samples[n // 4 : n // 2], samples[3 * n // 4 :]
    early, late = ([median(column) for column in zip(*part, strict=True)] for part in parts)
    return early, late


def not_flat(samples: list[Usage]) -> list[str]:
    """What grew."""
    early, late = quarters(samples)
    limits = (early[0] * MORE_MEMORY + MORE_BYTES, early[1] + MORE_DESCRIPTORS, early[2])
    names = ("bytes", "descriptors", "threads")
    return [
        f"{early[k]:,.0f} {names[k]} in the second quarter, {late[k]:,.0f} in the last"
        for k in range(3)
        if late[k] > limits[k]
    ]


def disagreements(told: dict[str, list[list[Any]]]) -> list[str]:
    """Processes that got other messages than the others between the same two views."""
    seen: dict[tuple[str, int, int], dict[tuple[int, int], list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for process, lines in told.items():
        last: dict[str, int] = {}
        for line in lines:
            if line[0] == "out":
                last.clear()
            elif line[0] == "view":
                _, group, number, _, messages, digest = line
                if messages is not None and group in last:
                    seen[group, last[group], number][messages, digest].append(process)
                last[group] = number
    return [
        f"{group}, views {first} to {second}: {dict(versions)}"
        for (group, first, second), versions in seen.items()
        if len(versions) > 1
    ]


def _free_ports(count: int) -> list[int]:
    """Ports that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--rate", type=float, default=50.0, help="messages a second, of each node")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--out", type=Path, default=Path("out/soak"))
    wanted = parser.parse_args()
    soak = Soak(wanted.out, wanted.rate, wanted.seed)
    soak.run(wanted.minutes)
    soak.judge()
    soak.tell()
    return 1 if soak.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
