"""Is a witness true? Checked against the events themselves, with nothing of the kernels.

`Lies(events).told(property, witness)` says what a witness claims that the logs do not bear out.
The oracle is only asked who is a member, and who owes what.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ordercast.trace.oracle.logs import Place, Run
from ordercast.trace.oracle.membership import (
    current_view,
    interval_at,
    open_interval,
    owes,
    owes_live,
    sending_view,
    view_rows,
)
from ordercast.trace.schema import Event

Witness = dict[str, Any]


class Lies:
    """Checks the witnesses of one run, whose crash notes are settled."""

    def __init__(self, events: list[Event], *, quiescent: bool = False) -> None:
        self.run = Run(events, quiescent=quiescent)
        self.rows = {(e.process, e.index, e.kind, e.message, e.group) for e in events}

    def told(self, name: str, witness: Witness) -> list[str]:
        """What is not true of a witness for the property `name`."""
        return [*self._events(witness), *self._checks(name, witness)]

    def _events(self, witness: Witness) -> Iterator[str]:
        """Every event named is a row of the trace, with this index and this group."""
        for e in witness.get("events", ()):
            row = (e["process"], e["index"], e["kind"], e.get("message"), e.get("group"))
            if row not in self.rows:
                yield f"no such event: {e}"

    def _checks(self, name: str, witness: Witness) -> Iterator[str]:
        family = name.split(".")[0]
        if family == "hybrid":
            family = "precedence" if "chain" in witness else "total"
        if family in ("fifo", "causal"):
            family = "precedence"
        return getattr(self, f"_{family}")(name, witness)  # type: ignore[no-any-return]

    # Places.

    def _delivery(self, process: str, message: str) -> int | None:
        return self.run.deliveries[process].get(message)

    def _sent(self, message: str) -> Place:
        return self.run.sends[message]

    def _delivers_in_order(self, process: str, first: str, second: str) -> bool:
        one, two = self._delivery(process, first), self._delivery(process, second)
        return one is not None and two is not None and one < two

    # Properties.

    def _wellformed(self, _: str, witness: Witness) -> Iterator[str]:
        if "round" in witness:
            yield from self._round(witness["round"])
        elif "index" in witness:
            log = self.run.logs[witness["process"]]
            if sum(event.index == witness["index"] for event in log) < 2:
                yield "the index occurs once"
        elif "messages" in witness:
            first, again = witness["events"]
            if first == again or first["message"] != again["message"]:
                yield "not two sends of one message"
        else:
            stop, after = witness["events"]
            if stop["kind"] not in ("crash", "end") or after["index"] < stop["index"]:
                yield "nothing follows a last event"

    def _round(self, steps: list[Witness]) -> Iterator[str]:
        for step, following in pairwise([*steps, steps[0]]):
            process, sent = self._sent(step["sends"])
            delivered = self._delivery(step["process"], step["delivers"])
            if process != step["process"] or delivered is None or delivered > sent:
                yield f"not so: {step}"
            if following["sends"] != step["delivers"]:
                yield f"no way round from {step} to {following}"

    def _no_duplication(self, _: str, witness: Witness) -> Iterator[str]:
        first, again = [e for e in witness["events"] if e["kind"] == "deliver"]
        if first["index"] >= again["index"] or first["message"] != again["message"]:
            yield "not two deliveries of one message"
        if {first["process"], again["process"]} != {witness["process"]}:
            yield "not two deliveries by the process"

    def _no_creation(self, _: str, witness: Witness) -> Iterator[str]:
        process, [m] = witness["process"], witness["messages"]
        delivery = Place(process, self.run.deliveries[process][m])
        if m not in self.run.sends:
            return
        groups = [self.run.event(place).group for place in (self._sent(m), delivery)]
        if "groups" in witness:
            if witness["groups"] != groups or groups[0] == groups[1]:
                yield f"the groups are {groups}"
        elif self._sent(m) not in self.run.before[delivery]:
            yield "the send is not after the delivery"

    def _membership(self, _: str, witness: Witness) -> Iterator[str]:
        process, [m] = witness["process"], witness["messages"]
        at = self.run.deliveries[process][m]
        if interval_at(self.run, process, self.run.group_of(m), at) is not None:
            yield "it is a member then"

    def _missing(self, witness: Witness) -> Iterator[str]:
        process, m = witness["missing"]["process"], witness["missing"]["message"]
        if self._delivery(process, m) is not None:
            yield "it is not missing"
        if process != witness["process"] or m not in witness["messages"]:
            yield "two stories of what is missing where"

    def _validity(self, _: str, witness: Witness) -> Iterator[str]:
        yield from self._missing(witness)
        process, [m] = witness["process"], witness["messages"]
        if self._sent(m).process == process:
            if open_interval(self.run, process, self.run.group_of(m)) is None:
                yield "it is no member to the end"
        elif not owes_live(self.run, process, m):
            yield "it does not owe it"

    def _agreement(self, name: str, witness: Witness) -> Iterator[str]:
        yield from self._missing(witness)
        process, [m] = witness["process"], witness["messages"]
        if not owes_live(self.run, process, m):
            yield "it does not owe it"
        shown = {e["process"] for e in witness["events"] if e["kind"] == "deliver"}
        if not shown or (name == "agreement" and all(map(self.run.crashed, shown))):
            yield "nobody is shown who delivers it"

    def _precedence(self, name: str, witness: Witness) -> Iterator[str]:
        process, (a, b), chain = witness["process"], witness["messages"], witness["chain"]
        if [chain[0], chain[-1]] != [a, b]:
            yield "the chain is about others"
        for m, following in pairwise(chain):
            sender, sent = self._sent(following)
            knew = [self._delivery(sender, m)]
            if self._sent(m).process == sender:
                knew.append(self._sent(m).position)
            if not any(at is not None and at < sent for at in knew):
                yield f"{sender} did not know {m} when it sent {following}"
            inside = name.removesuffix(".uniform") in ("fifo.group", "causal.group")
            if inside and self.run.group_of(m) != self.run.group_of(following):
                yield "the chain leaves the group"
        if name.startswith("fifo") and self._sent(a).process != self._sent(b).process:
            yield "two senders"
        yield from self._late_or_missing(process, a, b, witness)
        yield from self._binds(name, process)

    def _late_or_missing(self, process: str, a: str, b: str, witness: Witness) -> Iterator[str]:
        if "missing" in witness:
            yield from self._missing(witness)
            at = self._delivery(process, b)
            if at is None or not owes(self.run, process, a, at):
                yield "it does not owe it there"
        elif not self._delivers_in_order(process, b, a):
            yield f"{process} does not deliver {b} before {a}"

    def _binds(self, name: str, process: str) -> Iterator[str]:
        if not name.endswith(".uniform") and self.run.crashed(process):
            yield f"{process} crashed"

    def _total(self, name: str, witness: Witness) -> Iterator[str]:
        if "cycle" not in witness:
            yield from self._lacking(name, witness)
            return
        edges = witness["cycle"]
        for edge, following in pairwise([*edges, edges[0]]):
            if not self._delivers_in_order(edge["process"], edge["before"], edge["after"]):
                yield f"not so: {edge}"
            if edge["after"] != following["before"]:
                yield f"{following} does not follow {edge}"
            yield from self._binds(name, edge["process"])
        groups = {self.run.group_of(edge["before"]) for edge in edges}
        if name.split(".")[1] in ("group", "gapless", "total_fifo", "kindberg") and len(groups) > 1:
            yield "the cycle leaves the group"
        if "pairwise" in name and len(edges) != 2:
            yield "not a pair"

    def _lacking(self, name: str, witness: Witness) -> Iterator[str]:
        """A gap in total order."""
        (shows, process), (a, b) = witness["processes"], witness["messages"]
        if not self._delivers_in_order(shows, a, b):
            yield f"{shows} does not deliver {a} before {b}"
        if self.run.group_of(a) != self.run.group_of(b):
            yield "two groups"
        yield from self._late_or_missing(process, a, b, witness)
        yield from self._binds(name, process)
        yield from self._binds(name, shows)

    def _views(self, _: str, witness: Witness) -> Iterator[str]:
        places = [self._view_row(event) for event in witness["events"]]
        if "lists" in witness:
            lists = [list(self.run.event(place).members or ()) for place in places]
            views = {self.run.event(place).view for place in places}
            if lists != witness["lists"] or lists[0] == lists[1] or views != {witness["view"]}:
                yield "these are not its lists"
        elif "views" in witness:
            ids = [self.run.event(place).view or 0 for place in places]
            if ids != witness["views"] or ids[1] > ids[0] or places[0] >= places[1]:
                yield "the ids grow"
        else:
            members = list(self.run.event(places[0]).members or ())
            if members != witness["members"] or witness["process"] in members:
                yield "it is in the view"

    def _view_row(self, event: Witness) -> Place:
        log = self.run.logs[event["process"]]
        return next(
            Place(event["process"], at)
            for at, row in enumerate(log)
            if (row.index, row.kind, row.view) == (event["index"], "view", event["view"])
        )

    def _vsync(self, _: str, witness: Witness) -> Iterator[str]:
        p, q = witness["processes"]
        group, views = witness["group"], witness["views"]
        sets = [list(self._stays(process, group, views)) for process in (p, q)]
        stories = [
            (sorted(here - there), sorted(there - here))
            for here in sets[0]
            for there in sets[1]
        ]  # fmt: skip
        told = tuple(sorted(witness["only"][process]) for process in (p, q))
        if told not in stories or p == q or not any(told):
            yield f"the differences are {stories}"
        if witness["differing"] != sum(map(len, told)):
            yield "wrongly counted"

    def _stays(self, process: str, group: str, views: list[int]) -> Iterator[set[str]]:
        for (start, one), (stop, two) in pairwise(view_rows(self.run, process, group)):
            if [one.view, two.view] == views:
                yield {
                    m
                    for m, at in self.run.deliveries[process].items()
                    if start < at < stop and self.run.group_of(m) == group
                }

    def _sending_view(self, _: str, witness: Witness) -> Iterator[str]:
        process, [m] = witness["process"], witness["messages"]
        view = current_view(
            self.run, process, self.run.group_of(m), self.run.deliveries[process][m]
        )
        told = (witness["sent_in"], witness["delivered_in"])
        true = (sending_view(self.run, m), None if view is None else view.view)
        if told != true or true[0] == true[1]:
            yield f"(sent in, delivered in) is {true}"
