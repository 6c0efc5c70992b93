"""Every packet of the sequencing service, from everybody who may not send it, to a node for which
it counts: it is a fault of its sender, and nothing changes.

And the other way round: every rule is loosened once, and then one of these cases fails. A rule that
cannot be loosened says that any node of the cluster may speak; who is none is not heard by a node
(`tests/protocols/test_strangers_to_the_group.py`).
"""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from ordercast.core.changing import NextEra, NumbersEnd
from ordercast.core.events import Receive, View
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing import headers
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.table import TABLE, Says

TRUE = dict(TABLE)
"""as the table is; some tests change it"""

ME, MEMBER, SEQUENCER, OTHER, HOLDER = 0, 1, 2, 3, 4
NODES = (ME, MEMBER, SEQUENCER, OTHER, HOLDER)
G, ERA = 1, 3
PAGES = (Sequencing, SequencingHybrid, SequencingCausal, SequencingGlobal)


def machine(page, me, *, apart=False):
    """Of one that has had three frames in a group {0, 1} that 2 numbers."""
    made = page(me, Options(bodies_apart=apart, resilience=0))
    view = View(G, ERA, (ME, MEMBER), SEQUENCER, ERA)
    made.change(1, (NextEra(view, NumbersEnd(0, SEQUENCER)),))
    for n in (1, 2, 3):
        if me == SEQUENCER:
            made.handle(Receive(MEMBER, G, ERA, headers.Request(n, 1), b"m"))
        elif me in view.members:
            made.handle(Receive(SEQUENCER, G, ERA, headers.Accept(n, MEMBER, n, 0, 0), b"m"))
    assert not made.out.faults
    made.out.clear()
    return made


def in_a_change(page):
    """Another one has what is missing here."""
    made = machine(page, ME)
    made.member.seats[G].source = HOLDER
    return made


SCENES = {
    "is a member": lambda page: machine(page, ME),
    "is a member, bodies apart": lambda page: machine(page, ME, apart=True),
    "numbers the group": lambda page: machine(page, SEQUENCER),
    "lacks something in a change": in_a_change,
    "is in another group": lambda page: machine(page, OTHER),
}
MAY_SAY = {
    Says.NODE: set(NODES),
    Says.MEMBER: {ME, MEMBER},
    Says.SEQUENCER: {SEQUENCER},
    Says.HOLDER: {SEQUENCER},
}

PACKETS = {
    headers.Request: headers.Request(4, 1),
    headers.Spread: headers.Spread(SEQUENCER, 4, 1),
    headers.Accept: headers.Accept(4, MEMBER, 4, 0, 0),
    headers.Number: headers.Number(4, MEMBER, 4, 0, 0),
    headers.Marks: headers.Marks(3, 3, 0),
    headers.Answer: headers.Answer(0, 0, 0),
    headers.Ack: headers.Ack(3, 3),
    headers.Fetch: headers.Fetch(1, 3),
}


@cache
def scene(page, name):
    return SCENES[name](page)


def may_say(kind, name):
    says = TRUE[kind].says
    has_it = says is Says.HOLDER and name == "lacks something in a change"
    return MAY_SAY[says] | {HOLDER} if has_it else MAY_SAY[says]


def effects(machine):
    out = machine.out
    return [*out.transmits, *out.deliveries, *out.ordered, *out.eras]


def failures(page, kind):
    """What is wrong with the answers to all that may not be said; and how many cases there are."""
    found, cases = [], 0
    for name in SCENES:
        known = scene(page, name)
        for src in NODES:
            if src in may_say(kind, name) | {known.me}:
                continue
            cases += 1
            case = f"{PACKETS[kind]} of {src} to one that {name}"
            twin = known.copy()
            try:
                twin.handle(Receive(src, G, ERA, PACKETS[kind], b"lie"))
            except Exception as error:  # of a rule that was loosened
                found.append(f"{case} raises {error!r}")
                continue
            reason = f"{kind.__name__} comes from {TRUE[kind].says.value} only"
            if twin.out.faults != [(src, reason)]:
                found.append(f"{case} is another fault, or none: {twin.out.faults}")
            if twin.fingerprint() != known.fingerprint() or effects(twin):
                found.append(f"{case} changes something")
    return found, cases


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.declaration.name)
@pytest.mark.parametrize("kind", TRUE, ids=lambda kind: kind.__name__)
def test_what_somebody_may_not_say_is_its_fault_and_changes_nothing(page, kind):
    found, cases = failures(page, kind)
    assert found == []
    assert (cases == 0) == (TRUE[kind].says is Says.NODE)


@pytest.mark.parametrize(
    "kind",
    [kind for kind, rule in TRUE.items() if rule.says is not Says.NODE],
    ids=lambda kind: kind.__name__,
)
def test_a_rule_that_is_loosened_is_noticed(monkeypatch, kind):
    monkeypatch.setitem(TABLE, kind, msgspec.structs.replace(TRUE[kind], says=Says.NODE))
    assert failures(SequencingHybrid, kind)[0], f"nothing tests who may say {kind.__name__}"


@pytest.mark.parametrize("kind", TRUE, ids=lambda kind: kind.__name__)
def test_what_is_said_by_whoever_may_is_no_fault_of_authority(kind):
    """Else a table that lets nobody speak would pass."""
    for name in SCENES:
        known = scene(SequencingHybrid, name)
        for src in may_say(kind, name) - {known.me}:
            twin = known.copy()
            twin.handle(Receive(src, G, ERA, PACKETS[kind], b"m"))
            assert not any("comes from" in reason for _, reason in twin.out.faults)


@pytest.mark.parametrize("kind", TRUE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", SCENES)
def test_of_an_era_to_come_nothing_is_believed_of_whoever_may_not_say_it(kind, name):
    """It waits until that era begins; then it is a fault, and nothing of it is left."""
    known = scene(SequencingHybrid, name)
    for src in NODES:
        if src in may_say(kind, "is a member") | {known.me}:
            continue
        liar, honest = known.copy(), known.copy()
        liar.handle(Receive(src, G, ERA + 1, PACKETS[kind], b"lie"))
        assert not effects(liar) and len(liar.early) == 1
        for one in (liar, honest):
            before = one.views[G]
            view = View(G, ERA + 1, (ME, MEMBER), SEQUENCER, ERA + 1)
            one.out.clear()
            one.change(2, (NextEra(view, NumbersEnd(3, SEQUENCER), before),))
        assert [p for p, _ in liar.out.faults] == [src] and not honest.out.faults
        assert liar.fingerprint() == honest.fingerprint() and effects(liar) == effects(honest)


def test_who_was_a_member_when_it_spoke_and_is_none_now_is_not_numbered():
    numbers = machine(SequencingHybrid, SEQUENCER, apart=True)
    numbers.handle(Receive(MEMBER, G, ERA + 1, headers.Spread(SEQUENCER, 4, 4), b"lie"))
    before = numbers.views[G]
    view = View(G, ERA + 1, (ME,), SEQUENCER, ERA + 1)
    numbers.out.clear()
    numbers.change(2, (NextEra(view, NumbersEnd(3, SEQUENCER), before),))
    assert numbers.sequencer.books[G].N == 3 and not numbers.sequencer.waiting
    assert [p for p, _ in numbers.out.faults] == [MEMBER]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.declaration.name)
def test_bodies_of_one_that_is_no_member_any_more_are_forgotten(page):
    """It died before its frame got a number: that frame never gets one."""
    member = machine(page, ME, apart=True)
    member.handle(Receive(MEMBER, G, ERA, headers.Spread(SEQUENCER, 4, 4), b"m"))
    assert member.member.seats[G].bodies
    before = member.views[G]
    view = View(G, ERA + 1, (ME,), SEQUENCER, ERA + 1)
    member.change(2, (NextEra(view, NumbersEnd(3, SEQUENCER), before),))
    assert not member.member.seats[G].bodies
