"""`ordercast`: one command, a few verbs."""

from __future__ import annotations

import logging
import sys
import traceback

import typer

from ordercast import __version__
from ordercast.cli.admin import drain, groups, migrate, sequencers, undrain
from ordercast.cli.calibrate import calibrate
from ordercast.cli.chat import chat
from ordercast.cli.compare import compare
from ordercast.cli.demo import demo
from ordercast.cli.doctor import doctor
from ordercast.cli.exits import OUR_MISTAKE, a_lost_reader_ends_it, console
from ordercast.cli.explore import explore
from ordercast.cli.node import node
from ordercast.cli.protocols import protocols
from ordercast.cli.recovery import forget, recover
from ordercast.cli.sequencer import sequencer
from ordercast.cli.simulate import simulate
from ordercast.cli.status import status
from ordercast.cli.sweep import sweep
from ordercast.cli.verify import verify
from ordercast.cli.watch import watch
from ordercast.cli.why import why

app = typer.Typer(
    name="ordercast",
    help="Ordered, reliable group messaging, and the checker that proves it.",
    epilog="Exit codes: 0 fine, 1 violated, 2 bad input, 3 inconclusive, 4 no cluster.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
COMMANDS = (
    demo, chat, simulate, sweep, explore, verify, compare, watch, protocols, status, doctor, why,
    node, sequencer, sequencers, migrate, drain, undrain, forget, recover, calibrate,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)
app.add_typer(groups, name="groups")


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"ordercast {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Ordered, reliable group messaging, and the checker that proves it."""


def main() -> None:
    """The console script. What we did not foresee must not look like a verdict."""
    # Ctrl-C breaks a call to Java, which py4j reports through the root logger with a traceback.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    try:
        with a_lost_reader_ends_it():
            app()
    except Exception:
        traceback.print_exc()
        sys.exit(OUR_MISTAKE)
