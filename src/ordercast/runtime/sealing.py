"""The end of a node's log: is it complete, and who closes it."""

from __future__ import annotations

import asyncio

from ordercast.runtime.inbox import Interruption
from ordercast.runtime.items import View
from ordercast.runtime.presence import Presence
from ordercast.trace.recorder import Recorder


def record_end(presence: Presence) -> None:
    """If all that was sent is ordered and all that came was taken, this log is complete.

    Views that nobody came for are recorded here.
    """
    groups = presence.groups
    complete = all(stay.all_ordered and not stay.pending_frames for stay in groups.stays)
    complete = complete and not groups.visits  # one that ended has all in order
    if presence.recorder is not None and complete:
        _record_untaken_views(presence)
        presence.recorder.end()


def _record_untaken_views(presence: Presence) -> None:
    for inbox in presence.lifetime.inboxes():
        for parcel in inbox.parcels:
            if not isinstance(parcel, Interruption) and parcel[0].presence is presence:
                assert isinstance(parcel[1], View), "a message that nobody took"
                parcel[0].record_untaken(parcel[1])


async def close_log(presence: Presence) -> None:
    """In another thread: sealing takes a while."""
    if presence.over_to is not None:
        record_end(presence)
    recorder = _give_up_recorder(presence)
    if recorder is not None:
        await asyncio.to_thread(recorder.close)


def _give_up_recorder(presence: Presence) -> Recorder | None:
    """Nothing is recorded any more; the recorder may be closed in another thread."""
    recorder, presence.recorder = presence.recorder, None
    for sending in (*presence.groups.stays, *presence.groups.visits.values()):
        sending.recorder = None
    return recorder
