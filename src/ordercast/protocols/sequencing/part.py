"""What the parts of the sequencing service at one process share.

A part owns its tables. Whatever else it uses is lent to it when the parts are connected, at the
beginning and after a copy: the environment below, and the few questions that it may ask another
part of the same process, which stand above it as protocols (`OwnSender`, `OwnMember`, ...).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState
from ordercast.protocols.sequencing.resilience import Resilience
from ordercast.protocols.sequencing.timers import Timers


class Environment(NamedTuple):
    """What every part may use."""

    me: ProcessId
    options: Options
    views: dict[GroupId, View]  # the view in force, per group
    out: Output  # the effects of this step
    timers: Timers
    resilience: Resilience
    causal: bool  # contexts name what the sender had seen
    exact: bool  # contexts name the last numbers of groups that meet
    common: int  # groups that share so many members meet


class Part(PlainState):
    """One part of the service. What it is lent is not its state."""

    lent: ClassVar[frozenset[str]] = frozenset(Environment._fields)

    def share(self, env: Environment) -> None:
        """As fields of its own: a part that sees every frame looks them up often."""
        self.me, self.options = env.me, env.options
        self.views, self.out = env.views, env.out
        self.timers, self.resilience = env.timers, env.resilience
        self.causal, self.exact, self.common = env.causal, env.exact, env.common

    def state(self) -> dict[str, Any]:
        """All that the part itself owns."""
        return {name: value for name, value in self.__dict__.items() if name not in self.lent}

    def note(self, kind: str, g: GroupId, sender: ProcessId, n: int, remark: str) -> None:
        """Something worth a line in a trace at protocol level."""
        self.out.notes.append((kind, g, sender, n, remark))
