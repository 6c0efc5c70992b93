"""A name that keeps being excluded and coming back must wait, longer each time.

Every return of a node costs all others a view change and a state transfer. One on a failing
machine, or behind a link that breaks every few seconds, would keep the whole cluster busy.

    a node of this name is excluded     n := n + 1;  if n > 1: wait := first_wait * 2^(n - 2),
                                        at most longest_wait
    a tick                              one tick less to wait; when there was nothing to wait for
                                        in forget_after ticks: forget the name
    it asks to be let in                only if there is nothing to wait for

The first return is immediate: one exclusion is an accident. Names are counted, not processes, as
each return is another incarnation. A node that leaves in order was not excluded and never waits.

Every node sees the same exclusions and may keep this; the one that admits newcomers asks it. A node
that came in later knows only of those since, so after a change of the coordinator a name may have
to wait less than it would have, never more.

Limits      `max_names` names are kept. Beyond that the one excluded longest ago is forgotten, and
            counted in `dropped`.
"""

from __future__ import annotations

import msgspec

from ordercast.core.state import PlainState

FIRST_WAIT = 4  # ticks before the second return: a second, at the default heartbeat
LONGEST_WAIT = 120  # ticks: half a minute
FORGET_AFTER = 240  # ticks: a minute in which a name was not excluded, after its wait
MAX_NAMES = 1024


class Record(msgspec.Struct, frozen=True):
    """What is remembered of a name."""

    exclusions: int  # since it was last forgotten
    wait: int  # ticks until it may come in
    quiet: int  # ticks since then


class Flapping(PlainState):
    """Which names must wait, and how long. The owner calls `tick` every heartbeat interval."""

    def __init__(
        self,
        *,
        first_wait: int = FIRST_WAIT,
        longest_wait: int = LONGEST_WAIT,
        forget_after: int = FORGET_AFTER,
        max_names: int = MAX_NAMES,
    ) -> None:
        if not (1 <= first_wait <= longest_wait and forget_after >= 1 and max_names >= 1):
            raise ValueError(
                f"first_wait={first_wait}, longest_wait={longest_wait}, "
                f"forget_after={forget_after}, max_names={max_names}: all must be at least 1, "
                "and first_wait at most longest_wait"
            )
        self.first_wait = first_wait
        self.longest_wait = longest_wait
        self.forget_after = forget_after
        self.max_names = max_names
        self.names: list[str] = []  # in the order of their last exclusions
        self.records: dict[str, Record] = {}  # of these names
        self.dropped = 0  # names forgotten because there were too many

    def excluded(self, name: str) -> None:
        """A node of this name was excluded."""
        if name in self.records:
            self.names.remove(name)
        elif len(self.names) == self.max_names:
            del self.records[self.names.pop(0)]
            self.dropped += 1
        self.names.append(name)
        exclusions = self.exclusions(name) + 1
        self.records[name] = Record(exclusions, self._wait_after(exclusions), 0)

    def tick(self) -> None:
        """One heartbeat interval is over."""
        for name, record in self.records.items():
            self.records[name] = _aged(record)
        if any(record.quiet >= self.forget_after for record in self.records.values()):
            self.names = [n for n in self.names if self.records[n].quiet < self.forget_after]
            self.records = {n: self.records[n] for n in self.names}

    def may_enter(self, name: str) -> bool:
        """Whether a node of this name may be let in now."""
        return self.waits(name) == 0

    def waits(self, name: str) -> int:
        """Ticks until a node of this name may be let in."""
        record = self.records.get(name)
        return 0 if record is None else record.wait

    def exclusions(self, name: str) -> int:
        """How often the name was excluded since it was last forgotten."""
        record = self.records.get(name)
        return 0 if record is None else record.exclusions

    def _wait_after(self, exclusions: int) -> int:
        if exclusions == 1:
            return 0
        return min(self.first_wait << exclusions - 2, self.longest_wait)


def _aged(record: Record) -> Record:
    if record.wait:
        return Record(record.exclusions, record.wait - 1, 0)
    return Record(record.exclusions, 0, record.quiet + 1)
