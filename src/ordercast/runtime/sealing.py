"""The end of a node's trace log: whether it is complete, and how it is closed."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from ordercast.runtime.inbox import Interruption
from ordercast.runtime.lifetime import is_sign_of_return
from ordercast.runtime.presence import Presence
from ordercast.runtime.stream_events import View
from ordercast.trace.recorder import Recorder
from ordercast.trace.seal import Unsealed

SEAL_SECONDS = 2.0  # that the log of an incarnation gets, while its node goes on
LAST_SEGMENT = 0.2  # seconds before the end of that time in which no segment is begun


def record_end(presence: Presence) -> None:
    """If all that was sent is ordered and all that came was taken, this log is complete.

    Views that nobody came for are recorded here.
    """
    groups = presence.groups
    complete = all(one.all_ordered and not one.pending_frames for one in groups.unread_memberships)
    complete = complete and not groups.guest_sessions  # one that ended has all in order
    if presence.recorder is not None and complete:
        _record_unconsumed_views(presence)
        presence.recorder.end()


def _record_unconsumed_views(presence: Presence) -> None:
    for inbox in presence.lifetime.inboxes():
        for parcel in inbox.parcels:
            if isinstance(parcel, Interruption) or is_sign_of_return(parcel):
                continue  # it is in the log already
            if parcel[0].presence is presence:
                assert isinstance(parcel[1], View), "a message that nobody took"
                parcel[0].record_unconsumed(parcel[1])


async def close_log(presence: Presence, seconds: float = SEAL_SECONDS) -> None:
    """Write what was recorded to the disk, and seal it if that takes no more than these seconds."""
    if presence.over_to is not None:
        record_end(presence)
    recorder = _give_up_recorder(presence)
    if recorder is not None:
        recorder.finish()
        await _seal(recorder, seconds)


async def _seal(recorder: Recorder, seconds: float) -> None:
    """In a thread that neither this nor the end of the program waits for: a disk may hang.

    What such a thread leaves behind is what a crash would leave: the segment is still there.
    """
    loop = asyncio.get_running_loop()
    seconds = max(seconds, LAST_SEGMENT)
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def seal() -> None:
        failure = None
        try:
            recorder.seal(seconds - LAST_SEGMENT)
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # nobody waited, and the loop has ended
            loop.call_soon_threadsafe(tell, failure)

    threading.Thread(target=seal, name="seal", daemon=True).start()
    try:
        await asyncio.wait_for(done, seconds)
    except TimeoutError:
        recorder.say_unsealed(Unsealed(1, "it takes longer than the node may take to close"))


def _give_up_recorder(presence: Presence) -> Recorder | None:
    """Nothing is recorded any more; the recorder may be closed in another thread."""
    recorder, presence.recorder = presence.recorder, None
    for sending in (*presence.groups.unread_memberships, *presence.groups.guest_sessions.values()):
        sending.recorder = None
    return recorder
