"""One run of one protocol in one arena, judged; and what to say if it fails."""

from __future__ import annotations

import msgspec

from ordercast.core.protocol import OrderingProtocol
from ordercast.membership.standing import Dissolved
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import Outcome, simulate
from ordercast.simulation.log import NAMES
from ordercast.trace.oracle import judge
from ordercast.trace.schema import Event, Judgement
from sweep.arenas import ARENAS, Arena
from sweep.cluster_arenas import CLUSTERS
from sweep.cluster_oracle import ClusterRun, cluster_complaints, misplaced, run

IN_EVERY_RUN = ("no exception", "comes to rest", "nobody is blamed")  # beside the properties

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
    machine = PROTOCOLS[protocol]
    try:
        found = found_wrong(machine, arena, seed)
    except Exception as error:  # a machine's assertion is a finding like any other
        found = [("no exception", f"{type(error).__name__}: {error}")]
    return [Failure(protocol, arena, seed, name, sentence) for name, sentence in found]


def found_wrong(protocol: type[OrderingProtocol], arena: str, seed: int) -> Found:
    """Run it, and judge it."""
    if arena in CLUSTERS:
        done = run(CLUSTERS[arena].config(protocol, seed))
        return cluster_found(done, CLUSTERS[arena].wanted(protocol))
    outcome = simulate(ARENAS[arena].config(protocol, seed))
    return complaints(outcome, ARENAS[arena], ARENAS[arena].wanted(protocol))


def complaints(outcome: Outcome, arena: Arena, wanted: tuple[str, ...]) -> Found:
    """(property, sentence) for all that is not as it should be."""
    said = remarks(outcome, settles=arena.settles)
    return said + judged_trace(outcome.events(), wanted, settles=arena.settles)


def cluster_found(done: ClusterRun, wanted: tuple[str, ...]) -> Found:
    """The same of a run of a cluster. Those who are blocked, as they must be, may yet go on.

    Where every side goes on, the total orders of two sides are not one: there those count who were
    on the side that stayed, or came in later.
    """
    settles = not list(misplaced(done))
    found = [*cluster_complaints(done), *remarks(done.outcome, settles=settles)]
    events = done.outcome.events()
    if not done.merging:
        return found + judged_trace(events, wanted, settles=settles)
    one_side = tuple(name for name in wanted if name.partition(".")[0] in ("total", "hybrid"))
    others = tuple(name for name in wanted if name not in one_side)
    gone = {NAMES.process(p) for _, p, news in done.simulation.story if isinstance(news, Dissolved)}
    stayed = [
        msgspec.structs.replace(event, kind="crash")
        if event.kind == "end" and event.process in gone
        else event
        for event in events
    ]
    return [
        *found,
        *judged_trace(events, others, settles=settles),
        *judged_trace(stayed, one_side, settles=settles),
    ]


def remarks(outcome: Outcome, *, settles: bool) -> Found:
    """What the run itself says."""
    found = []
    if not outcome.quiescent and settles:
        found.append(("comes to rest", f"the run did not come to rest: {outcome.ended}"))
    for process, peer, reason in outcome.first_faults[:1]:
        found.append(("nobody is blamed", f"process {process} blames {peer}: {reason}"))
    return found


def judged_trace(events: list[Event], wanted: tuple[str, ...], *, settles: bool) -> Found:
    """What the oracle says of a trace."""
    judged = judge(events, only=wanted)
    wrong = ("violated", "inconclusive") if settles else ("violated",)
    bad = [name for name in wanted if judged[name].verdict in wrong]
    return [(name, why(judged[name])) for name in bad]


def why(judged: Judgement) -> str:
    """The first witness of a verdict, in words."""
    sentences = [violation.sentence for violation in judged.violations] or list(judged.doubts)
    return f"{judged.verdict}: {sentences[0] if sentences else 'nothing to say'}"
