"""validity and agreement: what had to be delivered and was not.

Absence can only be proved by a log that says it is complete. Elsewhere it is a doubt.
"""

from __future__ import annotations

from collections.abc import Callable

from ordercast.pipeline.kernels.findings import Evidence, Findings
from ordercast.pipeline.kernels.membership import Membership, missing
from ordercast.pipeline.kernels.run import NONE, Run

_Sentence = Callable[[Run, int, int], str]  # (run, process, message)


def validity(run: Run, members: Membership, limit: int) -> Findings:
    """A correct process delivers what it sends; for an outsider, some member does."""
    found = Findings(limit)
    for p, log in enumerate(run.logs):
        if log.crashed:
            continue
        for m, at in zip(log.sends, log.sent_at, strict=True):
            group = run.group_of[m]
            span = members.span_at(p, group, at)
            if span is None:
                _check_outsider(run, members, p, m, found)
            elif members.open_span(p, group) == span and m not in log.where:
                _absent(run, p, m, log.ended and not log.lost, found, _own_message)
    return found


def _check_outsider(run: Run, members: Membership, p: int, m: int, found: Findings) -> None:
    owing = [q for q, log in enumerate(run.logs) if not log.crashed and members.owed_live(q, m)]
    if not owing or any(m in run.logs[q].where for q in owing):
        return
    proved = run.logs[p].ended and all(run.logs[q].ended and not run.logs[q].lost for q in owing)
    _absent(run, owing[0], m, proved, found, _nobody)


def agreement(run: Run, members: Membership, limit: int) -> tuple[Findings, Findings]:
    """(agreement, agreement.uniform): what one delivers, all that owe it deliver."""
    plain, uniform = Findings(limit), Findings(limit)
    delivered = bytearray(len(run.messages))  # 1: by somebody, 3: by a correct one, 7: with `end`
    for log in run.logs:
        mark = 1 if log.crashed else 7 if log.ended else 3
        for m in log.deliveries:
            delivered[m] |= mark
    for q, log in enumerate(run.logs):
        if log.crashed:
            continue
        for m in missing(run, members, q):
            if delivered[m] and members.owed_live(q, m):
                proved = log.ended and not log.lost
                _absent(run, q, m, proved, uniform, _not_everywhere)
                if delivered[m] & 2:
                    _absent(run, q, m, proved and delivered[m] == 7, plain, _not_everywhere)
    return plain, uniform


def _absent(run: Run, q: int, m: int, proved: bool, found: Findings, sentence: _Sentence) -> None:
    if proved:
        found.violated(lambda: _evidence(run, q, m, sentence(run, q, m)))
    else:
        found.doubt(lambda: f"{sentence(run, q, m)}; {_why_open(run, q)}")


def _evidence(run: Run, q: int, m: int, sentence: str) -> Evidence:
    deliveries = [event for p in range(len(run.logs)) for event in run.delivery_event(p, m)]
    witness: dict[str, object] = {
        "process": run.processes[q],
        "messages": [run.messages[m]],
        "missing": {"process": run.processes[q], "message": run.messages[m]},
        "events": [*run.send_event(m), *deliveries[:4]],
    }
    return sentence, witness


def _why_open(run: Run, q: int) -> str:
    log = run.logs[q]
    if log.lost:
        return f"records of {log.name} are lost"
    if log.ended:
        return "the logs that would prove it have no end"
    return f"the log of {log.name} has no end"


def _own_message(run: Run, q: int, m: int) -> str:
    return f"{run.processes[q]} does not deliver its own {run.messages[m]}"


def _nobody(run: Run, _: int, m: int) -> str:
    sender = run.processes[run.sender[m]]
    return f"no member delivers {run.messages[m]}, sent by {sender} from outside the group"


def _not_everywhere(run: Run, q: int, m: int) -> str:
    some = next(log.name for log in run.logs if m in log.where)
    by = "" if run.sender[m] == NONE else f" of {run.processes[run.sender[m]]}"
    return f"{run.processes[q]} never delivers {run.messages[m]}{by}, which {some} delivers"
