"""What a run of an oracle cluster must keep: slow, obvious, and apart from the machines."""

from __future__ import annotations

from itertools import pairwise

from ordercast.protocols.sequencing.book import Numbering
from ordercast.protocols.sequencing.seat import Stay
from ordercast.views.states import Lead
from tests.views.oracle_cluster import OracleCluster


def judge(s: OracleCluster) -> set[str]:
    """The names of all rules that were broken."""
    return {*order_of_events(s), *_liveness(s)}


def order_of_events(s: OracleCluster) -> set[str]:
    """What nodes have logged, by the promises of the order."""
    bad = set()
    causal = s.order in ("hybrid", "causal-total")
    logs = {p: x.log for p, x in s.nodes.items()}
    living = s.living
    # what a budget of crashes promises: then also those who died count as witnesses
    strict = (s.order != "total" and s.order != "global-total") or s.k > 0
    strict = strict and (len(s.dead_at) <= 1 or s.at_once == 1 or len(s.dead_at) <= s.k)
    sender, bit = {}, {}
    for p, log in logs.items():
        for e in log:
            if e[0] == "send":
                sender[e[1]] = p
                bit[e[1]] = 1 << len(bit)
    members_of = {(e[1], e[2]): e[3] for log in logs.values() for e in log if e[0] == "view"}
    died = {v for v, members in members_of.items() if not any(p in living for p in members)}
    got = {
        p: [e[1] for e in log if e[0] == "deliver" and (e[2], e[3][0]) not in died]
        for p, log in logs.items()
    }
    pos = {p: {m: i for i, m in enumerate(order)} for p, order in got.items()}
    views, sections, inside, place = {}, {}, {p: {} for p in logs}, {}
    for p, log in logs.items():
        now = {}
        for e in log:
            if e[0] in ("view", "left"):
                _, g, era, members = e
                if views.setdefault((g, era), members) != members:
                    bad.add("views")
                if g in now:
                    key, delivered = (g, now[g][0], era), frozenset(now[g][1])
                    same = sections.setdefault(key, delivered) == delivered
                    if not same and (strict or p in living):
                        bad.add("vsync")
                    if era <= now[g][0]:
                        bad.add("views")
                if e[0] == "view":
                    now[g] = (era, [])
                    inside[p].setdefault(g, []).append(era)
                else:
                    now.pop(g, None)
            elif e[0] == "deliver":
                _, m, g, at = e
                if m not in sender:
                    bad.add("creation")
                if g not in now or now[g][0] != at[0]:
                    bad.add("membership")
                else:
                    now[g][1].append(m)
                if (strict or p in living) and place.setdefault((g, at), m) != m:
                    bad.add("one place, two frames")
    for order in got.values():
        if len(set(order)) != len(order):
            bad.add("duplication")
    observers = [p for p in logs if p in living or strict]
    era_of = {}
    for p in observers:
        for e in logs[p]:
            if e[0] != "deliver" or not any(q in living for q in views.get((e[2], e[3][0]), ())):
                continue
            if era_of.setdefault(e[1], e[3][0]) != e[3][0]:
                bad.add("two eras")
    for m, era in era_of.items():
        for q in living:
            if era in inside[q].get(m[1], ()) and m not in pos[q]:
                bad.add("agreement")
    final = s.nodes[min(living)].changes.directory.rows
    empty = {g for (g, _), members in views.items() if not any(p in living for p in members)}
    empty |= {g for g, row in s.start.items() if not any(p in living for p in row.members)}
    for g, row in final.items():  # an era that nobody saw had no members, or lost them all
        if any((g, era) not in views for era in range(1, row.era + 1)):
            empty.add(g)
    for m, p in sender.items():
        if p not in living:
            continue
        if m not in era_of and final[m[1]].members and m[1] not in empty:
            bad.add("validity")
        spans = inside[p].get(m[1], [])
        if m not in pos[p] and spans and m in era_of and era_of[m] in spans:
            bad.add("validity")
    if not s.wished:  # a crash disturbs nobody else's groups
        dead = set(s.dead_at)
        concerned = {g for g, row in s.start.items() if dead & set(row.concerned)}
        # ... but for frames under way: a sequencer ends groups together if one needs another
        near = {s.start[g].leader for g in concerned} if causal else set()
        for g, row in s.start.items():
            if g not in concerned and row.leader not in near and final[g].era != 1:
                bad.add("disturbed")
    past, idx, cur = {}, dict.fromkeys(logs, 0), dict.fromkeys(logs, 0)
    moved = True
    while moved:
        moved = False
        for p, log in logs.items():
            while idx[p] < len(log):
                e = log[idx[p]]
                if e[0] == "send":
                    past[e[1]] = cur[p]
                    cur[p] |= bit[e[1]]
                elif e[0] == "deliver":
                    if e[1] not in past:
                        break
                    cur[p] |= past[e[1]] | bit[e[1]]
                idx[p] += 1
                moved = True
    if any(idx[p] < len(log) for p, log in logs.items()):
        bad.add("delivered before sent")
    names = list(bit)
    for q in observers:
        before, now = 0, {}
        for e in logs[q]:
            if e[0] == "view":
                now.setdefault(e[1], e[2])
            elif e[0] == "left":
                now.pop(e[1], None)
            elif e[0] == "deliver":
                b = e[1]
                missing = past.get(b, 0) & ~before
                before |= bit.get(b, 0)
                while missing:
                    low = missing & -missing
                    missing ^= low
                    a = names[low.bit_length() - 1]
                    same = a[0] == b[0]
                    if not causal and not (same and a[1] == b[1]):
                        continue
                    if a in pos[q]:
                        bad.add("fifo" if same else "causal")
                    elif a in era_of:
                        if era_of[a] in inside[q].get(a[1], ()):
                            bad.add("fifo gap" if same else "causal gap")
                    elif a[1] in empty:
                        continue  # it may have its number in a view without members
                    elif strict and a[1] in now and _sent_era(logs, a) >= now[a[1]]:
                        bad.add("lost cause")
    for i, p in enumerate(observers):
        for q in observers[i + 1 :]:
            common = [m for m in got[p] if m in pos[q]]
            for pick in [None] if s.order != "hybrid" else list(final):
                c = [pos[q][m] for m in common if pick is None or m[1] == pick]
                if any(a > b for a, b in pairwise(c)):
                    bad.add("total.pairwise" if pick is None else "total.group")
    return bad


def _sent_era(logs, m):
    era = 1
    for e in logs[m[0]]:
        if e[0] == "send" and e[1] == m:
            return era
        if e[0] in ("view", "left") and e[1] == m[1]:
            era = e[2]
    return era


def _liveness(s: OracleCluster) -> set[str]:
    bad = set()
    final = s.nodes[min(s.living)].changes.directory.rows
    for p in s.living:
        x = s.nodes[p]
        if x.service.sender.outbox.own:
            bad.add("stuck: own frames")
        if any(seat.queue for seat in x.service.member.seats.values()):
            bad.add("stuck: queue")
        if any(seat.stay is not Stay.IN for seat in x.service.member.seats.values()):
            bad.add("stuck: seat")
        if x.changes.lead is not Lead.IDLE:
            bad.add("stuck: coordinator")
        if any(b.numbering is Numbering.STOPPED for b in x.service.sequencer.books.values()):
            bad.add("stuck: stopped")
        if x.changes.directory.rows != final:
            bad.add("stuck: directory")
        dead = set(s.dead_at)
        if any(dead & set(row.concerned) for row in x.changes.directory.rows.values()):
            bad.add("stuck: dead member")
        if x.changes.unmet:
            bad.add("stuck: wish")
        for (q, g), kind in s.wanting.items():
            if q == p and not x.granted(kind, g, p):
                bad.add("stuck: wish not granted")
        for book in x.service.sequencer.books.values():
            if book.stable < book.N:
                bad.add("stuck: unstable")
    return bad
