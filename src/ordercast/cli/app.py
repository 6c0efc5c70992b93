"""`ordercast`: one command, a few verbs."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer

from ordercast import __version__
from ordercast.cli.exits import OUR_MISTAKE, a_lost_reader_ends_it, console

COMMANDS = {  # in the order of the help: the module in which the function of that name is
    "demo": "demo",
    "chat": "chat",
    "simulate": "simulate",
    "sweep": "sweep",
    "explore": "explore",
    "check": "check",
    "verify": "verify",
    "compare": "compare",
    "watch": "watch",
    "protocols": "protocols",
    "status": "status",
    "doctor": "doctor",
    "why": "why",
    "node": "node",
    "sequencer": "sequencer",
    "sequencers": "admin",
    "migrate": "admin",
    "drain": "admin",
    "undrain": "admin",
    "forget": "recovery",
    "recover": "recovery",
    "calibrate": "calibrate",
    "groups": "admin",
}


def application(arguments: Sequence[str] = ()) -> typer.Typer:
    """The command line: the one command that the first argument names, or all of them.

    A command imports what it needs, and no command needs all of it: `check` is done sooner than the
    runtime is imported.
    """
    app = typer.Typer(
        name="ordercast",
        help="Ordered, reliable group messaging, and the checker that proves it.",
        epilog="Exit codes: 0 fine, 1 violated, 2 bad input, 3 inconclusive, 4 no cluster.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    first = arguments[0] if arguments else None
    for name in (first,) if first in COMMANDS else COMMANDS:
        command = getattr(import_module(f"ordercast.cli.{COMMANDS[name]}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"ordercast {__version__}", highlight=False)
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Ordered, reliable group messaging, and the checker that proves it."""


def __getattr__(name: str) -> Any:
    if name == "app":  # all commands, for whoever tests or documents them
        return globals().setdefault("app", application())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """The console script. What we did not foresee must not look like a verdict."""
    # Ctrl-C breaks a call to Java, which py4j reports through the root logger with a traceback.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    try:
        with a_lost_reader_ends_it():
            application(sys.argv[1:])()
    except Exception:
        traceback.print_exc()
        sys.exit(OUR_MISTAKE)
