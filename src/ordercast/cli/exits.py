"""Exit codes, the same for every command, and how an error becomes one.

0  it worked; with `verify` and `demo`: everything expected holds; with `doctor`: healthy
1  something that was expected is violated; with `doctor`: something is wrong; with commands that
   administer a cluster: it is not done in time
2  bad input: a wrong argument, an unreadable trace, a part that is not installed
3  inconclusive: the trace does not say enough to decide something expected
4  the cluster could not be reached, or ended; with Spark: also one of its processes on this machine
70 a bug in Ordercast, with a traceback
130 interrupted with Ctrl-C
141 the reader of the output went away, as with `| head`; without a message, as other programs do
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.console import Console

from ordercast.errors import JoinTimeout, NodeEnded, OrdercastError, PeerError
from ordercast.runtime.foreign_text import printable

VIOLATED, BAD_INPUT, INCONCLUSIVE, UNREACHABLE = 1, 2, 3, 4
OUR_MISTAKE, INTERRUPTED, NO_READER = 70, 130, 141

console = Console(emoji=False)  # results
progress = Console(emoji=False, stderr=True)  # everything else


def fail(text: str, code: int) -> typer.Exit:
    """Say what is wrong; the caller raises the exit."""
    progress.print(f"[bold red]error:[/] {escape(text)}", highlight=False, soft_wrap=True)
    return typer.Exit(code)


def escape(text: str) -> str:
    """Text that is not ours, so that it is neither markup nor a command to the terminal."""
    return printable(text, keep="\n").replace("[", "\\[")


@contextmanager
def errors_as_exits() -> Iterator[None]:
    """Turn the errors of the package into a sentence and an exit code."""
    try:
        yield
    except (JoinTimeout, NodeEnded, PeerError, ConnectionError, TimeoutError) as error:
        raise fail(str(error) or type(error).__name__, UNREACHABLE) from error
    except (OrdercastError, ValueError, OSError) as error:
        raise fail(str(error), BAD_INPUT) from error
    except ImportError as error:
        if error.name is None or error.name.startswith("ordercast"):
            raise
        package = error.name.partition(".")[0]
        hint = "install the extra 'pipeline': pip install '.[pipeline]' in a checkout"
        raise fail(f"this command needs {package}; {hint}", BAD_INPUT) from error
    except KeyboardInterrupt:
        progress.print("interrupted")
        raise typer.Exit(INTERRUPTED) from None


class _Output(io.TextIOWrapper):
    """Standard output. Rich and click would end with 1, a verdict, when its reader goes away."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self._end()

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            self._end()

    def _end(self) -> NoReturn:
        # What is still buffered goes nowhere, without a complaint when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        raise SystemExit(NO_READER)


@contextmanager
def a_lost_reader_ends_it() -> Iterator[None]:
    """End with `NO_READER` when nobody reads the standard output any more."""
    plain = sys.stdout
    output = _Output(plain.buffer, plain.encoding, plain.errors, line_buffering=plain.isatty())
    sys.stdout = output
    try:
        yield
    finally:
        sys.stdout = plain
        try:
            output.flush()
        finally:
            output.detach()
