"""One run of one protocol in one arena, judged; and what to say if it fails."""

from __future__ import annotations

import msgspec

from ordercast.core.ids import GroupId
from ordercast.core.protocol import OrderingProtocol
from ordercast.membership.news import Dissolved
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import Outcome, SimulationConfig, simulate
from ordercast.simulation.clustered import ClusterConfig
from ordercast.simulation.log import NAMES
from ordercast.trace.oracle import judge
from ordercast.trace.schema import Event, Judgement
from sweep import packets
from sweep.arenas import ARENAS, Arena
from sweep.cluster_arenas import CLUSTERS, wanted
from sweep.cluster_oracle import ClusterRun, cluster_complaints, misplaced, run

ACROSS_GROUPS = ("fifo.global", "causal.global", "hybrid.kindberg")  # and without a gap
FEW_PACKETS = "no more packets than declared"  # where they are counted

Found = list[tuple[str, str]]  # (property, sentence)


class Failure(msgspec.Struct, frozen=True):
    """A broken promise, and the line that shows it again."""

    protocol: str
    arena: str
    seed: int
    guarantee: str
    sentence: str

    @property
    def replay(self) -> str:
        """The command that runs this seed again and prints the trace."""
        return f"python -m sweep --protocol {self.protocol} --arena {self.arena} --seed {self.seed}"

    def __str__(self) -> str:
        place = f"{self.protocol} in arena {self.arena}, seed {self.seed}"
        return f"{place}: {self.guarantee}: {self.sentence}\n  replay: {self.replay}"


def failures(protocol: str, arena: str, seed: int) -> list[Failure]:
    """Everything that goes wrong in this run; nothing, one hopes."""
    return tried(protocol, arena, seed)[0]


def tried(protocol: str, arena: str, seed: int) -> tuple[list[Failure], Outcome | None]:
    """The same, and the run itself if it came to an end."""
    outcome: Outcome | None = None
    try:
        if arena in CLUSTERS:
            done = run(CLUSTERS[arena].config(PROTOCOLS[protocol], seed))
            outcome = done.outcome
            found = cluster_found(done, one_loss=CLUSTERS[arena].one_loss)
        else:
            config = ARENAS[arena].config(PROTOCOLS[protocol], seed)
            outcome = simulate(config)
            found = _found(config, outcome, ARENAS[arena])
    except Exception as error:  # a machine's assertion is a finding like any other
        found = [("no exception", f"{type(error).__name__}: {error}")]
    return [Failure(protocol, arena, seed, name, sentence) for name, sentence in found], outcome


def _found(config: SimulationConfig, outcome: Outcome, arena: Arena) -> Found:
    found = complaints(outcome, arena, arena.wanted(config.protocol))
    if arena.counted and (said := packets.complaint(config, outcome.statistics)):
        found.append((FEW_PACKETS, said))
    return found


def complaints(outcome: Outcome, arena: Arena, names: tuple[str, ...]) -> Found:
    """(property, sentence) for all that is not as it should be."""
    said = remarks(outcome, settles=arena.settles)
    return said + judged_trace(outcome.events(), names, settles=arena.settles)


def cluster_found(done: ClusterRun, *, one_loss: bool = False) -> Found:
    """The same of a run of a cluster. Those who are blocked, as they must be, may yet go on."""
    settles = not list(misplaced(done))
    found = [*cluster_complaints(done), *remarks(done.outcome, settles=settles)]
    events = done.outcome.events()
    config = done.simulation.config
    for page, groups in _groups_by_protocol(config).items():
        trace = _of_groups(events, groups)
        names = _promised(config, wanted(page), groups)
        found += _judged_of_cluster(done, trace, names, settles=settles)
    if one_loss and not done.merging:
        for g in _durable_groups(config):
            trace = _of_groups(events, {g})
            found += judged_trace(trace, ("agreement.uniform",), settles=settles)
    return found


def _judged_of_cluster(
    done: ClusterRun, events: list[Event], names: tuple[str, ...], *, settles: bool
) -> Found:
    """Where every side goes on, the total orders of two sides are not one: there those count who
    were on the side that stayed, or came in later."""
    if not done.merging:
        return judged_trace(events, names, settles=settles)
    one_side = tuple(name for name in names if name.partition(".")[0] in ("total", "hybrid"))
    others = tuple(name for name in names if name not in one_side)
    gone = {NAMES.process(p) for _, p, news in done.simulation.story if isinstance(news, Dissolved)}
    stayed = [
        msgspec.structs.replace(event, kind="crash")
        if event.kind == "end" and event.process in gone
        else event
        for event in events
    ]
    return [
        *judged_trace(events, others, settles=settles),
        *judged_trace(stayed, one_side, settles=settles),
    ]


def _groups_by_protocol(config: ClusterConfig) -> dict[type[OrderingProtocol], set[GroupId]]:
    """No protocol promises an order between its groups and those of another one."""
    found: dict[type[OrderingProtocol], set[GroupId]] = {}
    for g, group in config.group_list():
        found.setdefault(config.protocol_of(group), set()).add(g)
    return found


def _promised(
    config: ClusterConfig, names: tuple[str, ...], groups: set[GroupId]
) -> tuple[str, ...]:
    """With `resilience=0` no crash is provided for: who is in two groups may get what a dead sender
    said last in one of them, and not what it said before that in the other."""
    asked = {group.durability for g, group in config.group_list() if g in groups}
    asked = {config.options.durability if one is None else one for one in asked}
    return tuple(name for name in names if name not in ACROSS_GROUPS) if 0 in asked else names


def _durable_groups(config: ClusterConfig) -> list[GroupId]:
    """Groups in which what is delivered survives the loss of one node."""
    return [g for g, group in config.group_list() if group.durability not in (None, 0)]


def _of_groups(events: list[Event], groups: set[GroupId]) -> list[Event]:
    """The part of a trace that tells of these, and when processes ended."""
    names = {None, *map(NAMES.group, groups)}
    return [event for event in events if event.group in names]


def remarks(outcome: Outcome, *, settles: bool) -> Found:
    """What the run itself says."""
    found = []
    if not outcome.quiescent and settles:
        found.append(("comes to rest", f"the run did not come to rest: {outcome.ended}"))
    for process, peer, reason in outcome.first_faults[:1]:
        found.append(("nobody is blamed", f"process {process} blames {peer}: {reason}"))
    return found


def judged_trace(events: list[Event], names: tuple[str, ...], *, settles: bool) -> Found:
    """What the oracle says of a trace."""
    judged = judge(events, only=names)
    wrong = ("violated", "inconclusive") if settles else ("violated",)
    bad = [name for name in names if judged[name].verdict in wrong]
    return [(name, why(judged[name])) for name in bad]


def why(judged: Judgement) -> str:
    """The first witness of a verdict, in words."""
    sentences = [violation.sentence for violation in judged.violations] or list(judged.doubts)
    return f"{judged.verdict}: {sentences[0] if sentences else 'nothing to say'}"
