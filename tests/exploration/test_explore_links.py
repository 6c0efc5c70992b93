"""The link alone, two processes and three frames: all arrive once and in order."""

from __future__ import annotations

import pytest

from explored import SCRIPTS, scenario, told
from faulty_machines.links import AcknowledgesAhead, HandsUpRepeats, NeverRepeats
from ordercast.exploration import explore
from ordercast.exploration.links import LinkAlone
from ordercast.reliability.link import Link


def link_alone(kind: type[Link]) -> type[LinkAlone]:
    class Faulty(LinkAlone):
        pass

    Faulty.kind = kind
    return Faulty


@pytest.mark.parametrize(("losses", "duplicates"), [(0, 1), (1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("script", SCRIPTS)
def test_whatever_is_lost_doubled_and_overtaken_all_frames_arrive_once_in_order(
    script: str, losses: int, duplicates: int
) -> None:
    found = explore(
        scenario(
            LinkAlone,
            script,
            3,
            processes=2,
            losses=losses,
            duplicates=duplicates,
            rounds_after=4,
        )
    )
    assert found.complete, told(found)


@pytest.mark.parametrize(
    ("kind", "faults", "broken"),
    [
        (NeverRepeats, {"losses": 1}, "agreement"),
        (HandsUpRepeats, {"duplicates": 1}, "no_duplication"),
        (AcknowledgesAhead, {"losses": 1}, "agreement"),
    ],
)
def test_a_faulty_link_is_found(kind: type[Link], faults: dict[str, int], broken: str) -> None:
    found = explore(scenario(link_alone(kind), "burst", 3, processes=2, rounds_after=4, **faults))
    assert found.violated == (broken,)
