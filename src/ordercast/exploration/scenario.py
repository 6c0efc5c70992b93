"""What is explored: a few processes, their groups, and what they say.

A message of a script may be an answer: it is said only once its process has delivered the message
that it answers. So causal dependencies are explored too.
"""

from __future__ import annotations

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.errors import ConfigError
from ordercast.placement.components import strong_components, weak_components
from ordercast.trace.schema import PROPERTIES

Members = tuple[ProcessId, ...]
MessageId = int  # the place in the script, from 0; people see m1, m2, ...


class Saying(msgspec.Struct, frozen=True):
    """One message of a script."""

    process: ProcessId
    group: GroupId
    after: MessageId | None = None  # said once this one was delivered there


Script = tuple[Saying, ...]

COMPONENTS = {"strong": strong_components, "weak": weak_components}

ROUNDS = 4
ROUNDS_AFTER_CRASH = 1
ROUNDS_AFTER = 1


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration small enough to try everything that can happen in it.

    Processes are 0 to processes - 1. Groups are numbered from 1; the first member leads, and of
    groups that must have one sequencer the first member of the first of them. Each process says
    its messages in the order of the script.
    """

    protocol: type[OrderingProtocol]
    processes: int = 3
    groups: tuple[Members, ...]
    script: Script
    losses: int = 0  # packets the network loses in all
    duplicates: int = 0  # packets that come twice, in all
    crash: bool = False  # one process, whichever, may crash at any moment
    rounds: int = ROUNDS  # of timers that may bring no progress before we call it blocked
    rounds_after_crash: int = ROUNDS_AFTER_CRASH  # ... and after a crash, where some wait for good
    rounds_after: int = ROUNDS_AFTER  # of timers after everything was delivered: nothing may follow
    expect: tuple[str, ...] = ()  # properties wanted beside those promised, also after a crash
    options: Options = Options()

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise ValueError(f"processes={self.processes} must be at least 1")
        for name in ("losses", "duplicates", "rounds", "rounds_after_crash", "rounds_after"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)} must not be negative")
        self._check_network()
        for name in self.expect:
            if name not in PROPERTIES:
                near = [known for known in PROPERTIES if known.startswith(f"{name}.")]
                raise ValueError(
                    f"unknown property {name!r}; {'say one of' if near else 'known are'} "
                    f"{', '.join(near or PROPERTIES)}"
                )
        for members in self.groups:
            _check_group(members, self.processes)
        for k, saying in enumerate(self.script):
            self._check_saying(k, saying)

    def members(self, g: GroupId) -> Members:
        """Of group g, in the order of its view."""
        return self.groups[g - 1]

    def leader(self, g: GroupId) -> ProcessId:
        """Of group g."""
        components = COMPONENTS.get(self.protocol.together or "")
        if components is None:
            return self.members(g)[0]
        groups = {h: frozenset(members) for h, members in enumerate(self.groups, start=1)}
        return self.members(min(next(part for part in components(groups) if g in part)))[0]

    def groups_of(self, p: ProcessId) -> tuple[GroupId, ...]:
        """The groups that p is a member of, or leads."""
        return tuple(
            g
            for g, members in enumerate(self.groups, start=1)
            if p in members or p == self.leader(g)
        )

    def _check_network(self) -> None:
        network = self.protocol.declaration.network
        if self.losses and network != "N0":
            raise ConfigError(
                f"losses={self.losses}, but {self.protocol.declaration.name} needs a network of "
                f"class {network}, which loses nothing; losses are for protocols that need N0 only"
            )
        if self.duplicates and network not in ("N0", "N1"):
            raise ConfigError(
                f"duplicates={self.duplicates}, but {self.protocol.declaration.name} needs a "
                f"network of class {network}, which repeats nothing; leave duplicates at 0"
            )

    def _check_saying(self, k: MessageId, saying: Saying) -> None:
        name, g = message_name(k), saying.group
        if not 1 <= g <= len(self.groups) or saying.process not in self.members(g):
            raise ConfigError(
                f"{name} is said by process {saying.process} to group {g}, of which it is no "
                f"member; the groups are {groups_in_words(self.groups)}"
            )
        if saying.after is None:
            return
        if not 0 <= saying.after < k:
            raise ConfigError(f"{name} answers message {saying.after + 1}, which is none before it")
        if saying.process not in self.members(self.script[saying.after].group):
            raise ConfigError(
                f"{name} is said by process {saying.process} after {message_name(saying.after)}, "
                "which is never delivered there"
            )


def message_name(k: MessageId) -> str:
    """As people see it: m1 is the first of the script."""
    return f"m{k + 1}"


def groups_in_words(groups: tuple[Members, ...]) -> str:
    """g1 = {0, 1, 2}, g2 = {1, 2}"""
    return ", ".join(
        f"g{g} = {{{', '.join(map(str, members))}}}" for g, members in enumerate(groups, start=1)
    )


def one_group(processes: int) -> tuple[Members, ...]:
    """Everybody in one group."""
    return (tuple(range(processes)),)


def two_overlapping_groups(processes: int) -> tuple[Members, ...]:
    """Two groups with all but one process in common, or, of four and more, all but two."""
    if processes < 3:
        raise ConfigError(f"processes={processes}: groups overlap with at least 3 processes")
    if processes == 3:
        return ((0, 1, 2), (1, 2))
    return (tuple(range(processes - 1)), tuple(range(1, processes)))


def default_scripts(groups: tuple[Members, ...], messages: int) -> dict[str, Script]:
    """Three ways to say `messages` messages, by the name of the way.

    free     the processes in turn, each when it likes
    replies  the processes in turn, each in answer to the message before
    burst    one process says two in a row; the others answer the first of them
    """
    if messages < 1:
        raise ValueError(f"messages={messages} must be at least 1")
    homes = _groups_by_process(groups)
    speakers = sorted(homes)
    turns = [speakers[k % len(speakers)] for k in range(messages)]
    free = tuple(Saying(p, homes[p][k % len(homes[p])]) for k, p in enumerate(turns))
    replies = tuple(
        Saying(s.process, s.group, k - 1 if _hears(groups, free, s.process, k - 1) else None)
        for k, s in enumerate(free)
    )
    return {"free": free, "replies": replies, "burst": _burst(groups, homes, messages)}


def _burst(
    groups: tuple[Members, ...], homes: dict[ProcessId, list[GroupId]], messages: int
) -> Script:
    # The one who speaks twice is in as many groups as anybody, and leads none if possible.
    talker = max(homes, key=lambda p: (len(homes[p]), p))
    script = [
        Saying(talker, homes[talker][k % len(homes[talker])]) for k in range(min(2, messages))
    ]
    others = [p for p in sorted(homes) if p != talker] or [talker]
    for k in range(2, messages):
        p = others[k % len(others)]
        heard = 0 if p in groups[script[0].group - 1] else None
        script.append(Saying(p, homes[p][k % len(homes[p])], heard))
    return tuple(script)


def _groups_by_process(groups: tuple[Members, ...]) -> dict[ProcessId, list[GroupId]]:
    homes: dict[ProcessId, list[GroupId]] = {}
    for g, members in enumerate(groups, start=1):
        for p in members:
            homes.setdefault(p, []).append(g)
    return homes


def _hears(groups: tuple[Members, ...], script: Script, p: ProcessId, k: MessageId) -> bool:
    return k >= 0 and p in groups[script[k].group - 1]


def _check_group(members: Members, processes: int) -> None:
    if not members or len(set(members)) != len(members):
        raise ValueError(f"the group {members} needs at least one member, and none twice")
    for p in members:
        if not 0 <= p < processes:
            raise ConfigError(
                f"the group {members} names process {p}, but processes={processes}: "
                f"processes are 0 to {processes - 1}"
            )
