"""The sequencing service under chance (`chances`): the oracle judges. A failure names the seed."""

from __future__ import annotations

import pytest

from chances import Chances
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.service import SequencingService

PROTOCOLS = [Sequencing, SequencingHybrid, SequencingCausal, SequencingGlobal]
SEEDS = range(25)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whatever_happens_the_promises_are_kept(protocol: type[SequencingService]) -> None:
    for seed in SEEDS:
        run = Chances(protocol, seed)
        try:
            run.run()
            assert run.bench.faults == []
            assert run.judged() == []
        except Exception as error:
            error.add_note(f"{protocol.__name__}, seed {seed}")
            raise
