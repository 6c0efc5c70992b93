"""How long to wait for an answer before the same word is said again.

    a word is said            wait for the answer: `wait`
    no answer                 say it again, and wait twice as long, up to LONGEST times `most`
    the answer comes late     what was waited last is waited from now on: an answer needs so long
    the answer comes in time  wait a little less from now on, down to `least`

A machine has no clock and measures no round trip. It sees whether an answer came before its timer
rang, which is enough: an answer that crosses with the repetition of the question shows that the
question was repeated too early. Without the last two rules every message over a slow line would be
acknowledged several times. With a real loss the wait grows too; so what is learned has an upper
bound, `most`. The unit is the owner's: milliseconds, or periods of a timer of its own.
"""

from __future__ import annotations

from ordercast.core.state import PlainState

LONGEST = 8  # a wait without an answer is at most so many times `most`
STEP = 8  # an answer in time makes the wait shorter by this part of it


class Patience(PlainState):
    """Of one process with one kind of word. Its owner has the timer."""

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = max(least, most)
        self.learned = least  # answers came within this time
        self.wait = least  # from saying the word until saying it again

    def said_again(self) -> None:
        """There was no answer in time."""
        self.wait = min(2 * self.wait, LONGEST * self.most)

    def answered(self) -> None:
        """There was an answer, or news that make one needless."""
        if self.wait > self.learned:
            self.learned = min(self.wait, self.most)
        else:
            shorter = self.learned - max(1, self.learned // STEP)
            self.learned = max(shorter, self.least)
        self.wait = self.learned
