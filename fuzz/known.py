"""Findings that are known, and not mended yet. An entry goes when its fault does.

A campaign that does not find one of them any more says so: then it is time to take it out.
"""

from __future__ import annotations

import msgspec

from fuzz.findings import Finding


class Known(msgspec.Struct, frozen=True):
    """Exactly which findings an entry explains."""

    kind: str
    file: str  # "-" where nothing was raised
    function: str
    header: str
    why: str
    run: int  # one that finds it

    def explains(self, finding: Finding) -> bool:
        """Is this that one?"""
        file = finding.place.partition(":")[0]
        said = (finding.kind.removesuffix(" later"), file, finding.function, finding.header)
        return said == (self.kind, self.file, self.function, self.header)


KNOWN: tuple[Known, ...] = ()


def unexplained(findings: list[Finding]) -> list[Finding]:
    """Those that nobody knew of."""
    return [finding for finding in findings if not any(k.explains(finding) for k in KNOWN)]


def not_found(findings: list[Finding]) -> list[Known]:
    """Entries that explain nothing."""
    return [k for k in KNOWN if not any(k.explains(finding) for finding in findings)]
