"""The timers that machines ask for."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import TimerRequest
from ordercast.simulation.agenda import TICKS_PER_MS, Alarm, Lane


class Timers:
    """Which timer of which process is due when.

    A timer that was replaced or cancelled leaves its alarm in the agenda; the alarm finds that it
    is no longer the one that counts, and does nothing.
    """

    def __init__(self, processes: int, alarms: Lane[Alarm]) -> None:
        self.alarms = alarms
        self.due: list[dict[tuple[GroupId, str], int]] = [{} for _ in range(processes)]  # ticks

    def request(self, p: ProcessId, now: int, requests: Iterable[TimerRequest]) -> None:
        """Start, replace or (negative delay) cancel timers of p."""
        due = self.due[p]
        for group, name, delay_ms in requests:
            if delay_ms < 0:
                due.pop((group, name), None)
                continue
            tick = now + max(1, delay_ms * TICKS_PER_MS)
            due[group, name] = tick
            self.alarms[tick].append((p, group, name))

    def counts(self, due: int, alarm: Alarm) -> bool:
        """Is this alarm, of this tick, the one that counts?"""
        p, group, name = alarm
        return self.due[p].get((group, name)) == due

    def take(self, due: int, alarm: Alarm) -> bool:
        """Is this alarm, of this tick, the one that counts? If so it is used up."""
        p, group, name = alarm
        if self.due[p].get((group, name)) != due:
            return False
        del self.due[p][group, name]
        return True

    def stop(self, p: ProcessId) -> None:
        """p is dead: none of its timers ever fires."""
        self.due[p].clear()

    def cancel(self, p: ProcessId, group: GroupId) -> None:
        """p is out of this group: none of the group's timers fires there."""
        for key in [key for key in self.due[p] if key[0] == group]:
            del self.due[p][key]

    def running(self, p: ProcessId) -> int:
        """How many timers of p are running."""
        return len(self.due[p])
