"""Small scenes, schedule by schedule."""

from __future__ import annotations

import pytest

from tests.views import wrong_machines as wrong
from tests.views.explorer import SCENES, explore


@pytest.mark.parametrize("scene", SCENES)
def test_no_schedule_of_a_small_scene_breaks_a_promise(scene):
    states, _, complete = explore(scene, 200)
    assert complete or states >= 200


def test_a_sequencer_that_takes_the_cause_of_a_frame_along_is_found():
    with pytest.raises(AssertionError, match=r"lost cause|fifo"):
        explore("needs", 5_000, wrong.page("hybrid", wrong.NoNeeds))
