"""Small-scope exploration: everything that can happen to a few processes and a few messages.

The ordering machine itself runs here, on an abstract network of the class that it declares. There
are no links and no clock: every order in which packets can arrive is tried.

    found = explore(Scenario(protocol=CausalVector, groups=one_group(3), script=...))
    found.complete, found.violated, found.schedule
"""

from ordercast.core.protocol import OrderingProtocol
from ordercast.exploration.links import LinkAlone
from ordercast.exploration.scenario import (
    Saying,
    Scenario,
    default_scripts,
    groups_in_words,
    one_group,
    two_overlapping_groups,
)
from ordercast.exploration.schedule import Schedule, Shown, replay
from ordercast.exploration.search import DEFAULT_LIMIT, Exploration, explore
from ordercast.protocols.registry import PROTOCOLS

EXPLORABLE: dict[str, type[OrderingProtocol]] = {**PROTOCOLS, "link": LinkAlone}

__all__ = [
    "DEFAULT_LIMIT",
    "EXPLORABLE",
    "Exploration",
    "Saying",
    "Scenario",
    "Schedule",
    "Shown",
    "default_scripts",
    "explore",
    "groups_in_words",
    "one_group",
    "replay",
    "two_overlapping_groups",
]
