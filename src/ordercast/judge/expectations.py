"""Which properties a run is expected to have, and what that makes of its verdicts.

order          domain scope                                  group scope
none           no_duplication, no_creation, membership, validity, agreement
fifo           fifo.global                                   fifo.group
causal         causal.global                                 causal.group
total          total.pairwise, total.gapless, fifo.group     total.group, total.gapless, fifo.group
hybrid         hybrid.kindberg                               total.group, causal.group
causal-total   total.pairwise, causal.global                 total.group, causal.group
global-total   total.global                                  total.group
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ordercast.trace.schema import PROPERTIES, Verdict

ALWAYS = ("wellformed", "no_duplication", "no_creation", "membership")

_NONE = ("no_duplication", "no_creation", "membership", "validity", "agreement")
DOMAIN_SCOPE: dict[str, tuple[str, ...]] = {
    "none": _NONE,
    "fifo": ("fifo.global",),
    "causal": ("causal.global",),
    "total": ("total.pairwise", "total.gapless", "fifo.group"),
    "hybrid": ("hybrid.kindberg",),
    "causal-total": ("total.pairwise", "causal.global"),
    "global-total": ("total.global",),
}
GROUP_SCOPE: dict[str, tuple[str, ...]] = {
    "none": _NONE,
    "fifo": ("fifo.group",),
    "causal": ("causal.group",),
    "total": ("total.group", "total.gapless", "fifo.group"),
    "hybrid": ("total.group", "causal.group"),
    "causal-total": ("total.group", "causal.group"),
    "global-total": ("total.group",),
}

OK, VIOLATED, BAD_INPUT, INCONCLUSIVE = 0, 1, 2, 3  # exit codes


def promised(order: str, scope: str) -> tuple[str, ...]:
    """The properties that a declared order promises. An order we do not know promises nothing."""
    return (GROUP_SCOPE if scope == "group" else DOMAIN_SCOPE).get(order, ())


def expected_properties(names: Iterable[str]) -> tuple[str, ...]:
    """Properties for a list of order and property names; an order is read in domain scope.

    Raises `ValueError` for a name that is neither, with the nearest one and all valid ones.
    """
    found: dict[str, None] = {}
    for name in names:
        if name not in DOMAIN_SCOPE and name not in PROPERTIES:
            raise ValueError(_unknown(name))
        found.update(dict.fromkeys(DOMAIN_SCOPE.get(name, (name,))))
    return tuple(found)


def _unknown(name: str) -> str:
    valid = (*DOMAIN_SCOPE, *PROPERTIES)
    near = get_close_matches(name, valid, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return (
        f"unknown order or property {name!r}{hint} Orders: {', '.join(DOMAIN_SCOPE)}. "
        f"Properties: {', '.join(PROPERTIES)}"
    )


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """0 if all expected properties hold, 1 if one is violated, else 3.

    An expected property that is "n/a" could not be checked, so it does not hold: 3.
    """
    if "violated" in verdicts:
        return VIOLATED
    return OK if all(verdict == "ok" for verdict in verdicts) else INCONCLUSIVE
