"""The trace schema: one row per event, five columns needed, the rest optional.

This is the contract between whatever records a run (the simulator, a live node, the logs of
another system) and whatever judges it. It knows nothing of our protocols.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["ok", "violated", "inconclusive", "n/a"]

MEANINGFUL_KINDS = ("send", "deliver", "view", "join", "leave", "crash", "end", "lost", "group")
STATISTICAL_KINDS = ("receive", "forward", "drop", "retransmit", "nack", "ack", "hold", "null")
KINDS = MEANINGFUL_KINDS + STATISTICAL_KINDS

REQUIRED_COLUMNS = ("process", "index", "kind", "message", "group")
OPTIONAL_COLUMNS = (
    "run", "sender", "view", "members", "time", "seq", "size", "overhead", "layer", "note",
    "order", "protocol", "scope",
)  # fmt: skip
COLUMNS = REQUIRED_COLUMNS + OPTIONAL_COLUMNS

ORDER_PROPERTIES = (
    "fifo.group", "fifo.global", "causal.group", "causal.global",
    "total.group", "total.global", "total.pairwise", "total.gapless",
    "hybrid.total_fifo", "hybrid.total_causal", "hybrid.kindberg",
)  # fmt: skip
HYBRIDS = {  # each holds where both of these hold
    "hybrid.total_fifo": ("total.group", "fifo.group"),
    "hybrid.total_causal": ("total.global", "causal.global"),
    "hybrid.kindberg": ("total.group", "causal.global"),
}
PROPERTIES = (
    "wellformed", "no_duplication", "no_creation", "membership", "validity",
    "agreement", "agreement.uniform",
    *(name + form for name in ORDER_PROPERTIES for form in ("", ".uniform")),
    "views", "vsync", "sending_view",
)  # fmt: skip
assert len(PROPERTIES) == 32


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row of a trace."""

    process: str | None  # who; None only on `group` rows
    index: int | None  # place in the log of `process`; strictly increasing, holes mean nothing
    kind: str  # one of KINDS
    message: str | None = None  # unique per send
    group: str | None = None
    run: str = ""  # splits everything
    sender: str | None = None  # on `deliver`
    view: int | None = None
    members: tuple[str, ...] | None = None  # ordered
    time: int | None = None  # nanoseconds; for people and plots, never for verdicts
    seq: int | None = None  # the sequencer's number
    size: int | None = None  # body bytes
    overhead: int | None = None  # header bytes
    layer: str | None = None
    note: str | None = None
    order: str | None = None  # on `group`: what was promised ...
    protocol: str | None = None  # ... by which protocol ...
    scope: str | None = None  # ... in which scope: "group" or "domain"


class Violation(msgspec.Struct, frozen=True):
    """One broken promise, with the smallest evidence that shows it."""

    property: str
    sentence: str  # for people
    witness: dict[str, object]  # as data: processes, messages, indexes


class Judgement(msgspec.Struct, frozen=True):
    """What is to be said of one property of one run."""

    verdict: Verdict
    violations: tuple[Violation, ...] = ()  # evidence for "violated"
    doubts: tuple[str, ...] = ()  # why "inconclusive", in words
