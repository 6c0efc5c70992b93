"""A real browser for tests: headless Chromium, asked and told things over its debugging pipe.

No driver and no further package: Chromium reads commands as JSON from its file descriptor 3 and
writes answers and events to 4, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_SECONDS = 60  # a guard against hanging, not a measurement
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip


def find_chromium() -> str | None:
    """ORDERCAST_CHROMIUM, else the first of NAMES on the PATH."""
    named = os.environ.get("ORDERCAST_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, ended with the block."""
    to_read, write = os.pipe()
    read, to_write = os.pipe()

    def place_pipes() -> None:  # in the child: the two numbers that Chromium knows
        a, b = os.dup(to_read), os.dup(to_write)
        os.dup2(a, 3)
        os.dup2(b, 4)

    process = subprocess.Popen(
        [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=False,
        preexec_fn=place_pipes,
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Browser(read, write)
    finally:
        os.close(write)  # Chromium ends when its pipe does
        os.close(read)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Browser:
    """One browser with one tab."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []  # what the tab told since the last `open`
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        attached = self.do("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, f"{method}: {told['error']}"
                result: dict[str, Any] = told["result"]
                return result
            self.events.append(told)

    def _next(self) -> dict[str, Any]:
        until = monotonic() + PATIENCE_SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - monotonic()))
            data = os.read(self._read, 1 << 16) if ready else b""
            assert data, "Chromium has ended" if ready else "Chromium does not answer"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told

    def resize(self, width: int) -> None:
        """Make the window so many points wide."""
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=900,
                deviceScaleFactor=1, mobile=False)  # fmt: skip

    def open(self, page: Path, *, width: int = 1200, dark: bool = False, media: str = "") -> None:
        """Load a file in a window `width` points wide, and wait until it is laid out."""
        self.resize(width)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.events.clear()
        self.do("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        told = self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def press(self, key: str) -> None:
        """A key goes down and up: "Tab", "Enter", or "Space"."""
        code = {"Tab": 9, "Enter": 13, "Space": 32}[key]
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        told = {"key": text if key == "Space" else key, "code": key, "windowsVirtualKeyCode": code}
        self.do("Input.dispatchKeyEvent", type="keyDown", text=text, **told)
        self.do("Input.dispatchKeyEvent", type="keyUp", **told)

    def picture(self, path: Path) -> Path:
        """The whole page as a PNG file."""
        told = self.do("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(told["data"]))
        return path

    def printed(self) -> bytes:
        """The page as a PDF file, on A4."""
        told = self.do("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(told["data"])

    def requests(self) -> list[str]:
        """The addresses that the page has asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """What the browser wrote into its console: errors, and what the page's policy forbade."""
        return [
            event["params"]["entry"]["text"]
            for event in self.events
            if event.get("method") == "Log.entryAdded"
        ]
