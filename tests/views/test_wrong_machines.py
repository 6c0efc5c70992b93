"""Every rule of changes and of the sequencing service is needed: without it a random run fails.

The schedules are known to fail. If the machines have changed so that one of them does not any more,
others are tried.
"""

from __future__ import annotations

import pytest

from ordercast.core.changing import NextEra, NumbersEnd
from ordercast.core.events import Receive, View
from ordercast.protocols.sequencing import headers
from ordercast.views.changes import Changes
from tests.views import wrong_machines as wrong
from tests.views.campaign import one
from tests.views.oracle_cluster import ORDERS

MORE = 400  # further schedules, if the known one has changed

CAUGHT = [  # (machine, what is seen, first seed, order, k, crashes, flags)
    (wrong.NoNeeds, "lost cause", 26, "hybrid", 0, 1, ("storm",)),
    (wrong.NoCut, "lost cause", 26, "hybrid", 0, 1, ("storm",)),
    (wrong.MinUnion, "an era ends with", 0, "hybrid", 0, 1, ()),
    (wrong.NoDrain, "under way to one sequencer", 0, "hybrid", 0, 1, ("storm", "restless")),
    (wrong.NoAfter, "fifo", 0, "causal-total", 2, 2, ("storm",)),
    (wrong.RedoGroupOnly, "stuck: own frames", 2, "hybrid", 0, 1, ("storm",)),
    (wrong.DropEarly, "stuck: own frames", 0, "total", 2, 2, ("storm",)),
    (wrong.AnswerAtOnce, "lost cause", 26, "hybrid", 0, 1, ("storm",)),
    (wrong.EagerSequencer, "agreement", 0, "hybrid", 0, 1, ("lossy", "apart", "storm")),
    (wrong.NoS2, "total.pairwise", 0, "total", 0, 1, ("storm",)),
    (wrong.ReadyAtOnce, "agreement", 0, "causal-total", 0, 1, ()),
    (wrong.LostWaits, "stuck: queue", 8, "total", 0, 1, ("storm",)),
    (wrong.NoJoining, "", 1, "total", 0, 1, ("storm",)),
    (wrong.NoLast, "duplication", 0, "causal-total", 0, 1, ()),
    (wrong.ContextFalls, "fifo", 37, "hybrid", 0, 1, ("lossy", "apart")),
    (wrong.EndsApart, "lost cause", 70484, "causal-total", 0, 1, ("lossy", "apart")),
    (wrong.GoesOnNumbering, "fifo", 0, "causal-total", 0, 1, ()),
    (wrong.ForgetsEarly, "an unstable frame is kept", 0, "hybrid", 0, 1, ()),
    (wrong.BelievesTooMuch, "what is acknowledged is held", 0, "hybrid", 0, 1, ()),
    (wrong.NumbersTwice, "a number has one frame", 0, "causal-total", 0, 1, ()),
    (wrong.Alone, "the only member", 0, "hybrid", 0, 1, ("storm",)),
    (wrong.NoAdopt, "", 0, "hybrid", 0, 1, ()),
    (wrong.AsksOnce, "stuck", 1, "total", 2, 2, ("storm",)),
    (wrong.WishesAreEvents, "stuck: wish", 6, "hybrid", 0, 1, ("storm", "arrivals", "restless")),
    (wrong.ForgetsToStop, "stuck", 301, "total", 2, 2, ("storm",)),
    (wrong.RowsOnly, "come without it", 0, "hybrid", 0, 1, ("arrivals", "storm")),
    (wrong.AnybodyLeads, "from the coordinator only", 0, "hybrid", 0, 1, ()),
]


def is_caught(machine, sign, seed, order, k, crashes, flags):
    """Does the judge, or an invariant, see in this run that the machine is wrong?"""
    if issubclass(machine, Changes):
        _, broken = one(seed, order, k, crashes, flags, changes=machine)
    else:
        _, broken = one(seed, order, k, crashes, flags, page=wrong.page(order, machine))
    return any(sign in rule for rule in broken)


@pytest.mark.parametrize(
    ("machine", "sign", "seed", "order", "k", "crashes", "flags"),
    CAUGHT,
    ids=[case[0].__name__ for case in CAUGHT],
)
def test_a_wrong_machine_is_caught(machine, sign, seed, order, k, crashes, flags):
    tried = (seed, *range(MORE))
    assert any(is_caught(machine, sign, s, order, k, crashes, flags) for s in tried)


@pytest.mark.parametrize("wrong_machine", [False, True])
def test_a_need_in_an_era_that_has_not_begun_here_waits_for_it(wrong_machine):
    """The sequencer of groups 1 and 2 has installed the next era of 2, this member has not. Random
    runs need this rule once in some thousand."""
    page = ORDERS["hybrid"]
    machine = (wrong.page("hybrid", wrong.LaterEraIsOver) if wrong_machine else page)(0)
    for g in (1, 2):
        first = NextEra(View(g, 1, (0, 1), 2), NumbersEnd(0, 2))
        machine.change(g, (first,))
    machine.out.clear()
    frame = headers.Accept(1, 1, 1, 0, 0, (), ((2, 2, 5),))
    machine.handle(Receive(2, 1, 1, frame, b"m"))
    delivered = [item for item in machine.out.deliveries if isinstance(item, tuple)]
    assert bool(delivered) == wrong_machine
