"""What a run declares that it promises, for the groups of one domain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Domain:
    """Groups of one run for which the same was declared."""

    run: str
    order: str
    protocol: str
    scope: str  # "domain" or "group"
    groups: tuple[str, ...]
    everything: bool  # the run has no other groups: its own verdicts are the domain's

    @property
    def name(self) -> str:
        """For people: what was promised, by what, for which groups."""
        by = f" by {self.protocol}" if self.protocol else ""
        return f"{self.order}{by} ({self.scope} scope): {', '.join(self.groups)}"
