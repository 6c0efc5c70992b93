"""Faults below the ordering protocol: in the links. Those of view changes are in rows_clusters."""

from __future__ import annotations

from faulty_machines import links, unsequenced
from faulty_machines.faulty import Faulty
from faulty_machines.stages import lossy
from ordercast.protocols.fifo import Fifo

ROWS = (
    Faulty(
        name="link never repeats",
        source="a link transmits again what is not acknowledged",
        breaks="agreement",
        wrong=Fifo,
        right=Fifo,
        stage=lossy,
        process=links.GroupsThatNeverRepeats,
    ),
    Faulty(
        name="link hands up repeats",
        source="a link drops what it has handed up",
        breaks="no_duplication",
        wrong=unsequenced.TrustingBasic,
        right=unsequenced.TrustingBasic,
        stage=lossy,
        process=links.GroupsThatHandsUpRepeats,
    ),
    Faulty(
        name="link acknowledges ahead",
        source="a link acknowledges what has come without a gap",
        breaks="agreement",
        wrong=Fifo,
        right=Fifo,
        stage=lossy,
        process=links.GroupsThatAcknowledgesAhead,
    ),
)
