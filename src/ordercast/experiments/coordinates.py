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
    members: int = 5  # processes that are in groups
    groups: int = 1  # spread round a ring of the members, or along a line
    group_size: int = 0  # members of each; 0: all, and of several groups twice their share
    ring: bool = True  # false: groups lie along a line, and make no cycle
    cell: int = 0  # members live in cells of so many, and groups in one of them; 0: on a ring
    outside: float = 0.0  # share of a group that is drawn from outside its cell
    sequencers: int = 0  # further processes that lead the groups; 0: a member of each group does
    subgroups: int = 0  # of equally many members, for protocols that have any; 0: as they cut
    messages: int = 100  # that the workload starts; answers come on top
    workload: str = "paced"  # "paced": at random times; "saturating": as fast as the window allows
    senders: int = 0  # the first so many members send; 0: all
    every_us: float = 1000.0  # mean time between two messages, over all processes, if paced
    burst: int = 1  # messages sent in one instant, if paced
    reply: float = 0.0  # mean number of answers to a message
    depth: int = 4  # an answer to an answer to ... at most so deep
    size: int = 64  # bytes of a message
    window: int = 0  # own messages to a group not yet delivered by all; 0: any
    loss: float = 0.0  # probability that a packet is lost
    duplicate: float = 0.0  # probability that a packet comes twice
    fifo: bool = False  # packets of one process to another arrive in the order they were sent
    broadcast: bool = False  # a packet is sent once for all its receivers; else once for each
    delay: str = "uniform 500 1500"  # of a packet, in us: a distribution and its two numbers
    megabits: float = 0.0  # a second, into and out of a process; 0: bytes take what they cost
    work_cost: float = 1.0  # all work takes so many times what the cost model says
    entry_cost: float = 1.0  # an entry of a header costs so many times what the cost model says
    crashes: int = 0  # the last so many members crash half-way
    moves: int = 0  # so often all groups go to the next sequencer: a cluster, with its links
    flush: bool = True  # false: to compare, views change without one; of javagroups only
    hearsay: bool = True  # false: to compare, no header tells of groups that its sender is not in
    outage_ms: float = 0.0  # half-way the last member is cut off for so long
    options: tuple[tuple[str, Any], ...] = ()  # (name, value): limits and delays of the protocol
    seed: int = 0  # the same seed, the same run

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
