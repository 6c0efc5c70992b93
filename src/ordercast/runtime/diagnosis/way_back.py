"""Can a node that was reached also reach this one? It is asked to connect back."""

from __future__ import annotations

import asyncio

from ordercast.errors import PeerError
from ordercast.runtime.control import Dialback, DialbackReply
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.here import Doorbell
from ordercast.runtime.diagnosis.probe import Probe
from ordercast.runtime.dialback import BUSY, CALL_SECONDS, PAUSE_SECONDS, REACHED

WAY_BACK = "the node can connect back"
TRIES = 4  # while it is busy with others
RING_SECONDS = 1.0  # the bell rings before the answer comes, if all is well


async def check_way_back(probe: Probe, bell: Doorbell | None, diagnosis: Diagnosis) -> None:
    """Have the node call back at the port of the bell."""
    who = probe.report.identity
    if bell is None:
        diagnosis.skip(WAY_BACK, "give --bind, with a port that is free, to have it checked")
        return
    try:
        reply = await _call_back(probe, bell.port)
    except (PeerError, TimeoutError) as error:
        diagnosis.skip(WAY_BACK, f"{who} did not say whether it can: {error}")
        return
    if reply.outcome == BUSY:
        diagnosis.skip(WAY_BACK, f"{who} is connecting back to others: {reply.text}")
    elif reply.outcome != REACHED:
        seen = f"this machine reaches {who}, but {who} cannot reach it back: {reply.text}"
        diagnosis.find("way_back", probe.address, seen)
    elif not await bell.was_rung(RING_SECONDS):
        seen = f"{who} connected to {reply.text}, and that is not this node"
        diagnosis.find("way_back_elsewhere", probe.address, seen)
    else:
        diagnosis.passes(WAY_BACK, probe.address, f"{who} connected back to {reply.text}")


async def _call_back(probe: Probe, port: int) -> DialbackReply:
    for _ in range(TRIES):
        reply, _ = await probe.ask(Dialback(port), DialbackReply, CALL_SECONDS + 1)
        if reply.outcome != BUSY:
            break
        await asyncio.sleep(PAUSE_SECONDS)
    return reply
