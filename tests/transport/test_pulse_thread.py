"""The thread that speaks while the event loop stands still: when it speaks, and how it ends."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from time import monotonic

from ordercast.transport.pulse import PROOF_EVERY, Beating, Pause, PulseEar, PulseThread, Target
from ordercast.wire.pulse import KEY_BYTES, Pulse, unpack_pulse

KEY = bytes(range(KEY_BYTES))


def pulse_threads() -> int:
    return sum(thread.name == "ordercast-pulse" for thread in threading.enumerate())


async def until(condition) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_it_speaks_while_the_loop_is_late_and_no_longer_than_it_may_stand() -> None:
    beating = Beating(7, heartbeat_s=1.0, stall_s=10.0)
    beating.turned_at = 100.0
    assert beating.look(100.5) == Pulse(7, 1, 0)  # the first one shows that the way is open
    assert beating.look(101.0) is None
    assert beating.look(101.5) == Pulse(7, 2, 1500)
    assert beating.look(110.0) == Pulse(7, 3, 10_000)
    assert [beating.look(110.1 + n) for n in range(2 * PROOF_EVERY)] == [None] * 2 * PROOF_EVERY
    beating.turned_at = 300.0
    said = [beating.look(300.0) for _ in range(PROOF_EVERY)]
    assert [pulse for pulse in said if pulse is not None] == [Pulse(7, 4, 0)]


def test_it_knows_for_how_long_it_was_stopped_itself() -> None:
    beating = Beating(7, heartbeat_s=1.0, stall_s=60.0)
    beating.pause = Pause(looked_at=100.0)  # the thread begins
    beating.turned_at = 100.0
    beating.look(100.5)
    for now in (101.0, 101.5, 102.0):
        beating.look(now)
    assert beating.stopped_for(102.25) == 0.5
    assert beating.stopped_for(122.0) == 20.0  # the loop wakes before the thread
    beating.look(122.0)
    beating.look(122.5)
    assert beating.stopped_for(122.5) == 20.0  # ... or after it
    beating.turned_at = 122.5
    beating.look(123.0)
    assert beating.stopped_for(123.0) == 0.5  # the pause was told


async def test_pulses_arrive_although_the_loop_stands_still() -> None:
    heard: list[bytes] = []
    ear = PulseEar(("127.0.0.1", 0), heard.append)
    beating = Beating(7, heartbeat_s=0.02, stall_s=60.0)
    beating.targets = {1: Target(("127.0.0.1", ear.port), KEY)}
    thread = PulseThread(beating, asyncio.get_running_loop())
    try:
        while beating.sent < 10:  # nothing here awaits: the loop cannot turn
            time.sleep(0.01)
        await until(lambda: len(heard) >= 10)
    finally:
        thread.stop()
        ear.close()
    pulses = [unpack_pulse(datagram, KEY) for datagram in heard]
    assert [pulse.number for pulse in pulses if pulse] == list(range(1, len(heard) + 1))
    assert all(pulse is not None and pulse.stood_ms for pulse in pulses[1:])


async def test_it_ends_when_it_is_told_to_and_when_the_loop_is_closed() -> None:
    first = PulseThread(Beating(7, 0.01, 60.0), asyncio.get_running_loop())
    other = asyncio.new_event_loop()
    second = PulseThread(Beating(8, 0.01, 60.0), other)
    assert first._thread.is_alive() and second._thread.is_alive()
    first.stop()
    other.close()
    await until(lambda: not first._thread.is_alive() and not second._thread.is_alive())


async def test_a_forked_process_does_not_speak_for_its_parent() -> None:
    thread = PulseThread(Beating(7, 0.01, 60.0), asyncio.get_running_loop())
    child = os.fork()
    if child == 0:
        os._exit(pulse_threads())
    thread.stop()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


async def test_a_target_that_cannot_be_reached_stops_nobody() -> None:
    beating = Beating(7, heartbeat_s=0.01, stall_s=60.0)
    beating.turned_at = monotonic() - 1
    beating.targets = {
        1: Target(("256.1.1.1", 9), KEY),
        2: Target(("127.0.0.1", 9), KEY),
    }
    thread = PulseThread(beating, asyncio.get_running_loop())
    await until(lambda: beating.sent >= 3)
    thread.stop()


async def test_a_port_that_is_taken_is_replaced_by_another() -> None:
    first = PulseEar(("127.0.0.1", 0), lambda _: None)
    second = PulseEar(("127.0.0.1", first.port), lambda _: None)
    assert second.port != first.port
    first.close()
    second.close()
