"""The relay itself, a process in the hub: a switch that delays, loses and cuts.

    python relay_process.py SEED NAME=TAP=MAC ...

It moves Ethernet frames between tap devices, one for each member, so it treats TCP, UDP and all
else alike: a lost segment of a TCP connection is sent again by the kernel, as in a real network.

Orders come as JSON lines on standard input, {"do": "shape", "args": {...}}, and each is answered by
a line of JSON on standard output when it is in force. When the input ends, so does the relay.
It imports nothing of ours, so that it starts quickly and needs no path.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import Any

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
MAX_FRAME = 65_536
FRAMES_AT_ONCE = 64  # read from one device before the others get their turn
MAX_UNDER_WAY = 100_000  # delayed frames; more are dropped, and counted as crowded out

Way = tuple[str, str]  # from whom, to whom


@dataclass(frozen=True)
class Quality:
    """Of one way between two members."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0  # up to this much more; what overtakes, overtakes
    loss: float = 0.0  # share of the frames

    def __post_init__(self) -> None:
        if self.delay_ms < 0 or self.jitter_ms < 0 or not 0 <= self.loss <= 1:
            raise ValueError(f"{self}: delays are not negative, loss is between 0 and 1")


class Ways:
    """What becomes of a frame, for every way. Draws depend on the seed and the way alone."""

    def __init__(self, members: tuple[str, ...], seed: int) -> None:
        self.members = members
        self.quality = {way: Quality() for way in permutations(members, 2)}
        self.cut_ways: set[Way] = set()
        self.counts: dict[Way, Counter[str]] = {way: Counter() for way in self.quality}
        self._random = {way: Random(f"{seed} {way}") for way in self.quality}

    def shape(self, frm: list[str] | None, to: list[str] | None, **quality: float) -> None:
        """Give all ways from these to those a quality; None stands for everybody."""
        new = Quality(**quality)
        self.quality.update(dict.fromkeys(self._between(frm, to), new))

    def cut(self, frm: list[str] | None, to: list[str] | None) -> None:
        """Nothing comes through on these ways any more. The other direction stays."""
        self.cut_ways.update(self._between(frm, to))

    def mend(self) -> None:
        """No way is cut."""
        self.cut_ways.clear()

    def told(self) -> dict[str, dict[str, int]]:
        """Frames by way, "alice>bob", and by what became of them."""
        return {">".join(way): dict(counts) for way, counts in self.counts.items()}

    def delay(self, way: Way) -> float | None:
        """Seconds until a frame arrives; None if it never does."""
        quality, random = self.quality[way], self._random[way].random
        if way in self.cut_ways:
            self.counts[way]["cut"] += 1
        elif quality.loss and random() < quality.loss:
            self.counts[way]["lost"] += 1
        else:
            self.counts[way]["passed"] += 1
            jitter = quality.jitter_ms * random() if quality.jitter_ms else 0.0
            return (quality.delay_ms + jitter) / 1000
        return None

    def _between(self, frm: list[str] | None, to: list[str] | None) -> list[Way]:
        for name in (*(frm or ()), *(to or ())):
            if name not in self.members:
                raise ValueError(f"no member {name!r}; there are {', '.join(self.members)}")
        return [
            way
            for way in self.quality
            if (frm is None or way[0] in frm) and (to is None or way[1] in to)
        ]


class Switch:
    """Reads frames from the devices of the members and writes them to others'."""

    def __init__(self, ways: Ways, taps: dict[str, int], macs: dict[bytes, str]) -> None:
        self.ways = ways
        self._taps = taps
        self._macs = macs
        self._under_way = 0
        self._loop = asyncio.get_running_loop()
        for name, tap in taps.items():
            self._loop.add_reader(tap, self._read, name, tap)

    def _read(self, name: str, tap: int) -> None:
        for _ in range(FRAMES_AT_ONCE):
            try:
                frame = os.read(tap, MAX_FRAME)
            except BlockingIOError:
                return
            for other in self._receivers(name, frame[:6]):
                self._pass_on((name, other), frame)

    def _receivers(self, name: str, mac: bytes) -> list[str]:
        if mac[0] & 1:  # to several
            return [other for other in self._taps if other != name]
        other = self._macs.get(mac)
        return [] if other is None or other == name else [other]

    def _pass_on(self, way: Way, frame: bytes) -> None:
        delay = self.ways.delay(way)
        if delay == 0.0:
            self._write(way, frame)
        elif delay is not None and self._under_way < MAX_UNDER_WAY:
            self._under_way += 1
            self._loop.call_later(delay, self._arrive, way, frame)
        elif delay is not None:
            self.ways.counts[way]["crowded out"] += 1

    def _arrive(self, way: Way, frame: bytes) -> None:
        self._under_way -= 1
        self._write(way, frame)

    def _write(self, way: Way, frame: bytes) -> None:
        try:
            os.write(self._taps[way[1]], frame)
        except OSError:  # its queue is full, or the device is down: Ethernet promises nothing
            self.ways.counts[way]["not taken"] += 1


def open_tap(device: str) -> int:
    """The other end of a tap device that exists."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def carry_out(ways: Ways, line: bytes) -> dict[str, Any]:
    """One order, and the answer to it."""
    orders: dict[str, Callable[..., Any]]
    orders = {"shape": ways.shape, "cut": ways.cut, "mend": ways.mend, "counts": ways.told}
    order = json.loads(line)
    try:
        return {"result": orders[order["do"]](**order["args"])}
    except (KeyError, TypeError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


async def main(seed: str, *ports: str) -> None:
    """Switch until the input ends."""
    taps, macs = {}, {}
    for port in ports:
        name, device, mac = port.split("=")
        taps[name] = open_tap(device)
        macs[bytes.fromhex(mac.replace(":", ""))] = name
    switch = Switch(Ways(tuple(taps), int(seed)), taps, macs)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer
    )
    print(json.dumps({"result": "ready"}), flush=True)
    while line := await lines.readline():
        print(json.dumps(carry_out(switch.ways, line)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
