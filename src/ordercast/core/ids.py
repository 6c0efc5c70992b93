"""Who is who.

Inside a machine and on the wire, processes and groups are small integers, handed out by the
process that leads the cluster. People see names: `alice#2` is the second start of `alice`, so a
restarted process is never taken for a repeat of her former self.
"""

from __future__ import annotations

import msgspec

ProcessId = int
GroupId = int

MAX_NAME_BYTES = 255


class Identity(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A process as people know it: a name, and which start of that name this is."""

    name: str
    incarnation: int

    def __str__(self) -> str:
        return f"{self.name}#{self.incarnation}"


def check_name(what: str, name: object) -> str:
    """Return `name` if it can name a node or a group; else say what is wrong with it."""
    if not isinstance(name, str):
        raise TypeError(f"a {what} name is a str, not {type(name).__name__}")
    if not name:
        raise ValueError(f"a {what} name must not be empty")
    size = len(name.encode(errors="surrogatepass"))
    if size > MAX_NAME_BYTES:
        raise ValueError(
            f"the {what} name {name[:20]!r}... has {size} bytes; "
            f"at most {MAX_NAME_BYTES} are allowed"
        )
    if not name.isprintable():
        raise ValueError(
            f"the {what} name {name!r} contains a control character; use printable characters only"
        )
    if what == "node" and "/" in name:
        raise ValueError(f"the node name {name!r} contains '/', which separates names in traces")
    return name
