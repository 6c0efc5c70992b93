"""What the judge says, one line at a time, and what it remembers of what it said."""

from __future__ import annotations

import msgspec

VIOLATED = "violated"  # a promise is broken, for good
EXCUSED = "excused"  # whoever broke it has crashed: it counts for the `.uniform` form only
WITHDRAWN = "withdrawn"  # a later row shows that nothing was owed, or that records are missing
OVERDUE = "overdue"  # a delivery that is owed has not come within the stability time
ARRIVED = "arrived"  # an overdue delivery came after all
RELEASED = "released"  # an overdue delivery is owed no more: crashed, left, excluded
LIMIT = "limit"  # something had to be forgotten: what is said from here on may be incomplete


class Notice(msgspec.Struct, frozen=True):
    """One line of the watch. `about` is the same for the same thing, however rows arrived."""

    kind: str
    property: str
    about: str
    sentence: str
    witness: dict[str, object] = {}


class Gap(msgspec.Struct):
    """Why a finding says that something is missing: `process` owed a message of `group`."""

    process: int
    group: int
    from_start: bool  # owed because membership began with the log
    lowest: int = 0  # with views: owed because it is in all of these
    highest: int = -1


class Finding(msgspec.Struct):
    """A violation that was told, with what could still take it back."""

    property: str
    about: str
    sentence: str
    witness: dict[str, object]
    observers: list[list[int]]  # plain form: one of each list must not have crashed
    gap: Gap | None = None  # None: it stands whatever is read later
    by_end_of: int = -1  # it rests on the `end` of this process
    withdrawn: str = ""  # why it does not count any more
    told: str = ""  # the kind of the last notice about it
