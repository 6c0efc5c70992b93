"""Text that another process wrote, made fit for an error, a log or a terminal.

It may hold commands to a terminal, or a line break that looks like the beginning of another record.
Names are refused if they are not printable (`check_name`); sentences are shown all the same.
"""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """The same text, with every character that cannot be printed spelled out, as in a `repr`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)
