"""`ordercast calibrate`: what protocol code costs on this computer, for the simulator.

The processor time of real steps is measured, from bytes to bytes, and that of the system calls
which carry the bytes, over a TCP connection of this computer to itself.
"""

from __future__ import annotations

import platform
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec
import typer
from rich.table import Table

from ordercast import __version__
from ordercast.cli.exits import console, errors_as_exits, progress
from ordercast.protocols.registry import choose
from ordercast.simulation.calibration import fitted, measure, usual_runs
from ordercast.simulation.costs import Calibration, CostModel
from ordercast.simulation.least_squares import fit

SIZES = (64, 512, 4096, 16_384)  # bytes of the packets sent over the connection
ROUNDS = 1000  # packets of each size

clock = time.process_time_ns


def calibrate(
    protocol: list[str] = typer.Option(
        [], help="Protocol to measure; may be repeated. Default: the protocol of order 'total'."
    ),
    messages: int = typer.Option(400, min=1, help="Multicasts in each of the runs measured."),
    large: int = typer.Option(0, min=0, help="Measure a group of this many members, too."),
    out: Path = typer.Option(Path("out/costs.json"), help="Where the cost model is written."),
    as_json: bool = typer.Option(False, "--json", help="Print the file."),
) -> None:
    """Measure what protocol code costs here, and write a cost model for the simulator."""
    with errors_as_exits():
        names = protocol or [choose("total", None).declaration.name]
        with progress.status(f"measuring {', '.join(names)}"):
            calibration = calibrated(names, messages, large)
        calibration.write(out)
    if as_json:
        print(out.read_text(), end="")
        return
    table = Table(title=f"microseconds, by {', '.join(names)}", show_header=False)
    for name, value in msgspec.to_builtins(calibration.costs).items():
        table.add_row(name.removesuffix("_us").replace("_", " "), f"{value:g}")
    table.add_row("steps measured", str(calibration.steps))
    table.add_row("mean error of the fit", f"{calibration.error:.1%}")
    table.add_row("... of the kind of step that fits worst", f"{calibration.worst:.1%}")
    console.print(table)
    console.print(f"written to {out}", highlight=False, soft_wrap=True)


def calibrated(protocols: list[str], messages: int = 400, large: int = 0) -> Calibration:
    """The cost model of these protocols on this computer."""
    runs = [config for name in protocols for config in usual_runs(name, messages, large)]
    found = fitted(measure(runs, clock))
    return Calibration(
        costs=_with_network(found.costs),
        machine={
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "python": platform.python_version(),
            "ordercast": __version__,
        },
        protocols=tuple(protocols),
        steps=found.steps,
        error=found.error,
        worst=found.worst,
    )


def _with_network(costs: CostModel) -> CostModel:
    """The same, with the system calls that send and read a packet."""
    sent, read = _system_calls()
    rows = [(1.0, float(size)) for size in SIZES]
    send_us, send_byte_us = fit(rows, sent, [1 / us**2 for us in sent])
    read_us, read_byte_us = fit(rows, read, [1 / us**2 for us in read])
    return msgspec.structs.replace(
        costs,
        receive_us=round(costs.receive_us + read_us, 4),
        destination_us=round(send_us, 4),
        byte_us=round((send_byte_us + read_byte_us) / 2, 6),
    )


def _system_calls() -> tuple[list[float], list[float]]:
    """Microseconds to send, and to read, a packet of each of the SIZES."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
    with sender, receiver:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        taken = [_send_and_read(sender, receiver, size) for size in SIZES]
    return [sent for sent, _ in taken], [read for _, read in taken]


def _send_and_read(
    sender: socket.socket, receiver: socket.socket, size: int
) -> tuple[float, float]:
    data = b"." * size
    idle = median(-clock() + clock() for _ in range(ROUNDS))
    sent, read = [], []
    for _ in range(ROUNDS):
        start = clock()
        sender.sendall(data)
        middle = clock()
        left = size - len(receiver.recv(size))
        end = clock()
        while left:  # it came in pieces
            left -= len(receiver.recv(left))
        sent.append(middle - start - idle)
        read.append(end - middle - idle)
    return median(sent) / 1000, median(read) / 1000
