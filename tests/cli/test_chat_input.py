"""Where the lines of a chat come from: a file, a terminal. Pipes are tried with two terminals."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

ORDERCAST = str(Path(sys.executable).parent / "ordercast")


def test_chat_reads_a_file_to_its_end(tmp_path):
    (tmp_path / "lines").write_text("one\n\ntwo\n")
    with (tmp_path / "lines").open() as lines:
        done = subprocess.run(
            [ORDERCAST, "chat", "--name", "alice"],
            capture_output=True, text=True, stdin=lines, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "alice: one" in done.stdout


def heed_control_c() -> None:
    """A shell lets what it starts in the background ignore Ctrl-C, and all that starts in turn."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_chat_in_a_terminal_ends_with_control_c_and_leaves_the_terminal_as_it_was():
    ours, theirs = os.openpty()
    flags = fcntl.fcntl(theirs, fcntl.F_GETFL)
    chat = subprocess.Popen(
        [ORDERCAST, "chat", "--name", "alice"],
        stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=heed_control_c,
    )  # fmt: skip
    shown = b""
    while b"here: alice" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, b"hello\n")
    while b"alice: hello" not in shown.replace(b"\x1b[1m", b"").replace(b"\x1b[0m", b""):
        shown += os.read(ours, 4096)
    assert fcntl.fcntl(theirs, fcntl.F_GETFL) == flags
    chat.send_signal(signal.SIGINT)
    _, errors = chat.communicate(timeout=60)
    assert (chat.returncode, errors) == (0, b"")
    os.close(ours)
    os.close(theirs)
