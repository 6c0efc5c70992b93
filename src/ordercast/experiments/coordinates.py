"""Where in a grid a run lies: everything that one simulated run depends on, in plain values.

A new axis is a new field here, a line in RULES, and its use in `arrange`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import msgspec

from ordercast.core.protocol import Options
from ordercast.experiments.delays import delay_of
from ordercast.protocols.registry import PROTOCOLS

WORKLOADS = ("paced", "saturating")
MOST_MEMBERS = 10_000
MOST_MESSAGES = 10_000_000


class Coordinates(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a grid."""

    protocol: str  # one of `ordercast protocols`
    members: int = 5  # number of processes that are in groups
    groups: int = 1  # number of groups, laid on a ring of the members, or on a line
    group_size: int = 0  # members of each group; 0: all, or of several groups twice an equal share
    ring: bool = True  # false: groups are laid on a line, so they form no cycle
    cell: int = 0  # members per cell, with each group in one cell; 0: no cells, but a ring
    outside: float = 0.0  # share of the members of a group that come from outside its cell
    sequencers: int = 0  # additional processes that lead the groups; 0: a member of each group does
    subgroups: int = 0  # number of subgroups, of equal size; 0: the protocol decides
    messages: int = 100  # messages that the workload sends, not counting answers
    workload: str = "paced"  # "paced": at random times; "saturating": as fast as the window allows
    senders: int = 0  # number of members that send, the first ones; 0: all
    every_us: float = 1000.0  # mean time between two messages of all processes together, if paced
    burst: int = 1  # messages sent at the same time, if paced
    reply: float = 0.0  # mean number of answers to a message
    depth: int = 4  # longest chain of answers to answers
    size: int = 64  # bytes of a message
    window: int = 0  # limit of own messages to a group that not all have delivered; 0: none
    loss: float = 0.0  # probability that a packet is lost
    duplicate: float = 0.0  # probability that a packet arrives twice
    fifo: bool = False  # packets from one process to another arrive in the order sent
    broadcast: bool = False  # a packet is sent once for all its receivers; else once for each
    delay: str = "uniform 500 1500"  # of a packet, in us: a distribution with two numbers
    megabits: float = 0.0  # per second, into and out of a process; 0: no limit
    work_cost: float = 1.0  # factor on all costs of the cost model
    entry_cost: float = 1.0  # factor on the cost of a header entry in the cost model
    crashes: int = 0  # number of members that crash half-way, the last ones
    moves: int = 0  # how often all groups move to the next sequencer; the run is a whole cluster
    flush: bool = True  # false: views change without a flush, for comparison; javagroups only
    hearsay: bool = True  # false: headers name only groups of their sender, for comparison
    outage_ms: float = 0.0  # how long the last member is cut off, half-way
    options: tuple[tuple[str, Any], ...] = ()  # (name, value): limits and delays of the protocol
    seed: int = 0  # the same seed gives the same run

    @property
    def overlap(self) -> float:
        """Groups that a member is in, on average."""
        return self.groups * self.group_size / self.members


OF_VARIANTS = ("blocking", "constant_resends")  # no options of a protocol: see `variants`
OPTIONS = (
    *(name for name in Options.__struct_fields__ if name not in Coordinates.__struct_fields__),
    *OF_VARIANTS,
)
GIVEN_OTHERWISE = {"overlap": "group_size", "seeds": "seed"}
"""Keys of a plan that stand for another."""

KEYS = (
    *(key for key in Coordinates.__struct_fields__ if key != "options"),
    *(f"options.{key}" for key in OPTIONS),
    *GIVEN_OTHERWISE,
)

Check = Callable[[Any], bool]


def _whole(least: int, most: int | None = None) -> tuple[Check, str]:
    until = "" if most is None else f" to {most:,}"
    return (
        lambda v: type(v) is int and v >= least and (most is None or v <= most),
        f"a whole number from {least}{until}",
    )


def _share() -> tuple[Check, str]:
    return lambda v: _is_number(v) and 0 <= v < 1, "a probability: 0 or more, less than 1"


def _positive() -> tuple[Check, str]:
    return lambda v: _is_number(v) and v > 0, "a number greater than 0"


def _yes_or_no() -> tuple[Check, str]:
    return lambda v: isinstance(v, bool), "true or false"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


RULES: dict[str, tuple[Check, str]] = {
    "members": _whole(1, MOST_MEMBERS),
    "groups": _whole(1, MOST_MEMBERS),
    "group_size": _whole(0, MOST_MEMBERS),
    "ring": _yes_or_no(),
    "cell": _whole(0, MOST_MEMBERS),
    "outside": (lambda v: _is_number(v) and 0 <= v <= 1, "a share: 0 to 1"),
    "sequencers": _whole(0, MOST_MEMBERS),
    "subgroups": _whole(0, MOST_MEMBERS),
    "messages": _whole(1, MOST_MESSAGES),
    "workload": (lambda v: v in WORKLOADS, " or ".join(map(repr, WORKLOADS))),
    "senders": _whole(0, MOST_MEMBERS),
    "every_us": _positive(),
    "burst": _whole(1),
    "reply": (lambda v: _is_number(v) and v >= 0, "a number of answers, 0 or more"),
    "depth": _whole(0),
    "size": _whole(1),
    "window": _whole(0),
    "loss": _share(),
    "duplicate": _share(),
    "fifo": _yes_or_no(),
    "broadcast": _yes_or_no(),
    "work_cost": _positive(),
    "entry_cost": _positive(),
    "megabits": (lambda v: _is_number(v) and v >= 0, "megabits per second, or 0 for any number"),
    "crashes": _whole(0),
    "moves": _whole(0, 1000),
    "flush": _yes_or_no(),
    "hearsay": _yes_or_no(),
    "outage_ms": (lambda v: _is_number(v) and v >= 0, "milliseconds, 0 or more"),
    "seed": _whole(0),
    "seeds": _whole(1),
    "overlap": _positive(),
}
FLOATS = (
    "every_us", "reply", "loss", "duplicate", "overlap", "outside", "megabits", "outage_ms",
    "work_cost", "entry_cost",
)  # fmt: skip


def checked(key: str, value: Any) -> Any:
    """One value of that key; `ValueError` says what would be right."""
    if key == "protocol":
        return _protocol(value)
    if key == "delay":
        if not isinstance(value, str):
            raise ValueError(f"delay = {value!r} is wrong; write text like 'uniform 500 1500'")
        delay_of(value)
        return value
    if key.startswith("options."):
        return _option(key, value)
    right, says = RULES[key]
    if not right(value):
        raise ValueError(f"{key} = {value!r} is wrong; write {says}")
    return float(value) if key in FLOATS else value


def _protocol(value: Any) -> str:
    if isinstance(value, str) and value in PROTOCOLS:
        return value
    near = get_close_matches(str(value), PROTOCOLS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(PROTOCOLS)}"
    raise ValueError(f"there is no protocol {value!r}; {hint}")


def _option(key: str, value: Any) -> Any:
    name = key.removeprefix("options.")
    if name in OF_VARIANTS:
        if not isinstance(value, bool):
            raise ValueError(f"{key} = {value!r} is wrong; write true or false")
        return value
    try:
        given = msgspec.convert({name: value}, Options)
    except (msgspec.ValidationError, ValueError) as reason:
        raise ValueError(f"{key} = {value!r} is wrong: {reason}") from None
    return getattr(given, name)
