"""Faults below the ordering protocol: in the links and in the view change."""

from __future__ import annotations

from faulty_machines import links, membership, unsequenced
from faulty_machines.faulty import Faulty
from faulty_machines.stages import led_crash, lossy
from ordercast.protocols.fifo import Fifo

ROWS = (
    Faulty(
        name="link never repeats",
        source="a link transmits again what is not acknowledged",
        breaks="agreement",
        wrong=Fifo,
        right=Fifo,
        stage=lossy,
        stack=links.StackThatNeverRepeats,
    ),
    Faulty(
        name="link hands up repeats",
        source="a link drops what it has handed up",
        breaks="no_duplication",
        wrong=unsequenced.TrustingBasic,
        right=unsequenced.TrustingBasic,
        stage=lossy,
        stack=links.StackThatHandsUpRepeats,
    ),
    Faulty(
        name="link acknowledges ahead",
        source="a link acknowledges what has come without a gap",
        breaks="agreement",
        wrong=Fifo,
        right=Fifo,
        stage=lossy,
        stack=links.StackThatAcknowledgesAhead,
    ),
    Faulty(
        name="member sends during the flush",
        source="between PROPOSE and INSTALL nothing is sent",
        breaks="agreement",
        wrong=Fifo,
        right=Fifo,
        stage=led_crash,
        stack=membership.StackThatSendsDuringTheFlush,
    ),
    Faulty(
        name="leader waits for nobody",
        source="a view is installed when all have reported",
        breaks="agreement",
        wrong=Fifo,
        right=Fifo,
        stage=led_crash,
        stack=membership.StackThatWaitsForNobody,
    ),
)
