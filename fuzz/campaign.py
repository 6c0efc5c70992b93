"""Runs, moments, trials: one after the other until there are enough frames, or no time is left."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from random import Random
from time import monotonic

from fuzz import octets
from fuzz.findings import Book
from fuzz.lies import Liar
from fuzz.moments import Moment, Run, moments_of, run_of
from fuzz.mutate import Seen
from fuzz.trial import failure_of, patience, perform, script_of
from ordercast.simulation.run import no_collection

MOMENTS = 4  # of each kind of state, in each run
TRIALS = 20  # of each moment
WEIGHED = 4  # of so many trials one looks at the room that the node takes
OCTETS = 300  # byte strings for decoders, in each run


def campaign(
    frames: int,
    seconds: float,
    first: int = 0,
    *,
    runs: int = 1,
    moments: int = MOMENTS,
    trials: int = TRIALS,
    after_run: Callable[[Book], None] = lambda book: None,
) -> Book:
    """From run `first` on; at least so many runs, unless it is interrupted."""
    book, end = Book(), monotonic() + seconds
    readers = octets.readers()
    with patience(), no_collection(), suppress(KeyboardInterrupt):
        while book.runs < runs or (book.total < frames and monotonic() < end):
            run = run_of(first + book.runs)
            _fuzz_run(book, run, moments, trials)
            _fuzz_octets(book, run, readers)
            book.runs += 1
            gc.collect()
            after_run(book)
    return book


def _fuzz_run(book: Book, run: Run, of_each: int, trials: int) -> None:
    """One run, and lies to its nodes."""
    rng = Random(f"lies {run.number}")
    found, seen = moments_of(run, of_each)
    for moment in found:
        book.moments += 1
        _fuzz_moment(book, moment, seen, rng, trials)


def _fuzz_moment(book: Book, moment: Moment, seen: Seen, rng: Random, trials: int) -> None:
    process, before = moment.process(), book.tally.frames
    for trial in range(trials):
        liar = Liar(moment, process, seen, rng)
        steps = script_of(liar, rng)
        failure = perform(moment, steps, liar, book.tally, weigh=trial % WEIGHED == 0)
        book.tally.refused += liar.refused
        if failure is not None:
            book.note(moment, steps, liar, failure)
    book.frames[moment.run.protocol, moment.state] += book.tally.frames - before


def _fuzz_octets(book: Book, run: Run, readers: list[octets.Reader]) -> None:
    rng = Random(f"octets {run.number}")
    for _ in range(OCTETS):
        reader = rng.choice(readers)
        book.octets[reader[0]] += 1
        try:
            octets.try_reader(reader, rng)
        except Exception as error:
            said = f"{error!r} {error.__notes__}"[:300]
            book.note_octets(reader[0], run, failure_of("raised", error, said))
