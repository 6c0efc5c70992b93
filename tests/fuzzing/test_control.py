"""Whatever is said beside the groups, a node does not end, in any of its roles: the short form."""

from __future__ import annotations

from fuzz.control import control_campaign
from ordercast.runtime.control import CONTROLS

SEED, ROUNDS = 0, 2
INSIDE = ("coordinator", "member")
OUTSIDE = ("founding", "applicant", "returning")


async def test_every_control_message_to_every_role_is_at_worst_the_fault_of_who_said_it() -> None:
    book = await control_campaign(SEED, ROUNDS)
    assert not book.failures, "\n".join(book.failures)
    kinds = {kind.__name__ for kind in CONTROLS}
    for role in INSIDE:
        assert {kind for told, kind in book.said if told == role} == kinds
    assert set(book.roles()) == {*INSIDE, *OUTSIDE}
    liars = {name.partition("-")[0] for name in book.faults}
    assert liars == {"evil", "applicant", "stranger"}  # and neither alice nor bob
    assert sum(book.faults.values()) > sum(book.said.values()) // 10
