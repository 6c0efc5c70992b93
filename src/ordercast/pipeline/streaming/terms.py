"""What a checkpoint judges: written when it begins, and the same for as long as it is used.

The judges remember only what their properties need, so nothing else can be judged later on.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

FILE = "judges.json"


class Terms(msgspec.Struct, frozen=True):
    """What is judged, and after which time a delivery is overdue."""

    expected: tuple[str, ...]  # properties, sorted; none: what each run declares
    stable_ms: int


def check_terms(checkpoint: Path, expected: tuple[str, ...], stable_ms: int) -> None:
    """Raise `ValueError` if the checkpoint was begun to judge something else."""
    try:
        kept = msgspec.json.decode((checkpoint / FILE).read_bytes(), type=Terms)
    except FileNotFoundError:
        return
    if kept.expected != tuple(sorted(expected)):
        judges = named(kept.expected)
    elif kept.stable_ms != stable_ms:
        judges = f"with --stable-after {kept.stable_ms / 1000:g}s"
    else:
        return
    way_out = "name another --checkpoint, or delete it to begin anew"
    raise ValueError(f"this checkpoint ({checkpoint}) judges {judges}; {way_out}")


def keep_terms(checkpoint: Path, expected: tuple[str, ...], stable_ms: int) -> None:
    """Check them; write them down if the checkpoint begins now."""
    check_terms(checkpoint, expected, stable_ms)
    checkpoint.mkdir(parents=True, exist_ok=True)
    terms = Terms(tuple(sorted(expected)), stable_ms)
    draft = checkpoint / f".{FILE}"
    draft.write_bytes(msgspec.json.encode(terms))
    draft.rename(checkpoint / FILE)


def named(expected: tuple[str, ...]) -> str:
    """The properties, in words."""
    return ", ".join(expected) or "what each run declares"
