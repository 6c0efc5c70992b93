"""How many packets a run may cost: a promise beside the properties of its trace.

A protocol declares, as formulas, the packets of a frame and the small ones besides. A run may cost
a few times as much, and something for its beginning, for the packets that the network lost or
doubled, and for links where the protocol needs them. It may not cost more with time, with the delay
of the network, with the rate of messages, or with applications that take their time.
"""

from __future__ import annotations

import ast
import operator
import re

from ordercast.core.declaration import STRENGTH, Declaration
from ordercast.simulation import SimulationConfig
from ordercast.simulation.outcome import Statistics

SLACK = 2.0  # a word may cross with its answer, and be said once more
BEGINNING = 10  # messages' worth of packets, until the round trip is known
REPAIR = 6  # packets for each member, for each one that was lost or doubled

OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def evaluate(formula: str, n: int) -> int:
    """The value of a formula such as "2n(n-1), NULLs" in a group of n: what is before the comma."""
    terms = formula.partition(",")[0]
    explicit = re.sub(r"(?<=[\dn)])\s*(?=[n(])", "*", terms)
    return _value(ast.parse(explicit, mode="eval").body, n)


def _value(node: ast.expr, n: int) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id == "n":
        return n
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        return int(OPERATIONS[type(node.op)](_value(node.left, n), _value(node.right, n)))
    raise ValueError(f"{ast.unparse(node)} is no part of a formula of n")


def per_message(declared: Declaration, n: int) -> int:
    """Packets of all kinds, if nothing is lost and messages come one by one."""
    return evaluate(declared.packets, n) + evaluate(declared.control, n)


def most_packets(config: SimulationConfig, counted: Statistics) -> float:
    """So many may be sent in a run of one group of all processes."""
    (_, group), *others = config.group_list()
    assert not others, "formulas are of one group"
    declared = config.protocol_of(group).declaration
    each = SLACK * per_message(declared, len(group.members))
    if STRENGTH[config.network.network_class()] < STRENGTH[declared.network]:
        each *= 2  # a link acknowledges what it carries
    repaired = REPAIR * len(group.members) * (counted.lost + counted.duplicates)
    return each * (counted.multicasts + BEGINNING) + repaired


def complaint(config: SimulationConfig, counted: Statistics) -> str:
    """What to say if the run cost more; else nothing."""
    most = most_packets(config, counted)
    if counted.packets <= most:
        return ""
    kinds = sorted(counted.packets_of.items(), key=lambda kind: -kind[1])[:4]
    said = ", ".join(f"{count} {name}" for name, count in kinds)
    return (
        f"{counted.packets} packets for {counted.multicasts} messages, at most {most:.0f} were "
        f"promised: {said}"
    )
