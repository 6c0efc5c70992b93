"""What work costs: simulated processor time for packets, header entries, destinations, messages.

Without a cost model a process takes no time, and only the network delays anything. With one each
process has one processor, and a throughput or a delay of a run means something. Figures for a
computer are measured by `ordercast calibrate`, and kept as JSON.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ordercast.core.output import Transmit
from ordercast.errors import ConfigError


class CostModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Microseconds of a processor. What is not named here is free."""

    receive_us: float = 0.0  # a packet that came: read it, decode it, step the machine
    receive_entry_us: float = 0.0  # ... and each entry of its header
    send_us: float = 0.0  # a packet that is sent: encode it, once for all its destinations
    send_entry_us: float = 0.0  # ... and each entry of its header
    destination_us: float = 0.0  # each destination of a packet: hand it to the network
    destination_entry_us: float = 0.0  # ... and each entry of its header, if it is written anew
    byte_us: float = 0.0  # each byte of a payload, read or handed to the network
    multicast_us: float = 0.0  # a message that the application sends
    delivery_us: float = 0.0  # a message that is delivered to the application
    event_us: float = 0.0  # a timer that fires, or the word that the application took messages

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name}={value} must be 0 or more microseconds")

    def receiving(self, header: msgspec.Struct, payload: bytes) -> float:
        """Of a packet, until its effects are known."""
        cost = self.receive_us + self.byte_us * len(payload)
        if self.receive_entry_us:
            cost += self.receive_entry_us * entries_of(header)
        return cost

    def sending(self, transmit: Transmit, copies: int) -> float:
        """Of a packet that is handed to the network so many times."""
        _, _, _, header, payload = transmit
        cost = self.send_us + copies * (self.destination_us + self.byte_us * len(payload))
        entry_us = self.send_entry_us + copies * self.destination_entry_us
        if entry_us:
            cost += entry_us * entries_of(header)
        return cost


def entries_of(value: object) -> int:
    """How many single values a header holds; those in vectors, maps and wrapped headers too."""
    if isinstance(value, msgspec.Struct):
        return sum(entries_of(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, tuple | list | frozenset | set):
        return sum(entries_of(each) for each in value)
    if isinstance(value, dict):
        return sum(entries_of(key) + entries_of(each) for key, each in value.items())
    return 1


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A cost model, and how it was found."""

    costs: CostModel
    machine: dict[str, str] = {}  # which computer, which interpreter, when
    protocols: tuple[str, ...] = ()  # whose steps were measured
    steps: int = 0  # that were measured
    error: float = 0.0  # mean distance of model and measurement, as a share of what was measured
    worst: float = 0.0  # the same of the kind of step that the model fits worst

    def write(self, path: Path) -> None:
        """As JSON that `read_costs` reads."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self)) + b"\n")


def read_calibration(path: str | Path) -> Calibration:
    """What `ordercast calibrate` wrote into a file; `costs` alone will do."""
    path = Path(path)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; `ordercast calibrate --out` writes one") from None
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} is no cost model: {error}") from None


def read_costs(path: str | Path) -> CostModel:
    """The cost model of a file that `ordercast calibrate` wrote, or of one with `costs` alone."""
    return read_calibration(path).costs
