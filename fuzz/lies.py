"""Packets that are well formed and wrong, of a sender of some kind, for a node in some state.

All lies of a trial come from one liar. Most are packets that came to the node, with something
changed: a field at any depth, the kind of the header, the era, the group, the payload, the sender.
Some are drawn from nothing but the types of the headers that the channel may carry. Every one goes
through the codec of its channel, so the node sees only what the wire lets through.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any

import msgspec

from fuzz import octets
from fuzz.moments import Moment
from fuzz.mutate import LONG, Seen, drawn, mutated
from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import FrameError
from ordercast.membership.agreement_headers import Ballot
from ordercast.process.headers import CLUSTER_HEADERS, Headers, headers_of
from ordercast.process.process import CLUSTER_GROUP, Process
from ordercast.reliability.link import LINK_GROUP, LinkAck, Linked
from ordercast.wire.codec import ChannelCodec

STRANGER: ProcessId = 900_001
NO_GROUP: GroupId = 77
MAX_ERA = (1 << 32) - 1  # as the frame has it
ERAS = (0, 1, 2, 1 << 31, MAX_ERA - 1, MAX_ERA)


@lru_cache(maxsize=256)
def codec_of(headers: Headers) -> ChannelCodec:
    """Of a channel that carries these."""
    return ChannelCodec(headers)


class Liar:
    """Somebody who lies to one node."""

    def __init__(self, moment: Moment, process: Process, seen: Seen, rng: Random) -> None:
        self.moment = moment
        self.process = process
        self.seen = seen
        self.rng = rng
        coming = (e for batch in moment.following for e in batch if type(e) is Receive)
        self.packets: list[Receive] = [*moment.heard, *coming]  # that an honest node sent
        self.groups = sorted({*process.groups.machines, *process.rows})
        self.refused = 0  # by the decoder
        self.linked = 0  # packets of the link so far
        self.kind, self.pid = self._choose()
        self.own = [packet for packet in self.packets if packet.src == self.pid]

    def _choose(self) -> tuple[str, ProcessId]:
        kinds = self.kinds()
        kind = self.rng.choice(sorted(kinds))
        senders = [p for p in dict.fromkeys(p.src for p in self.packets) if p in self._all(kinds)]
        if senders and self.rng.random() < 0.5:  # somebody who has spoken
            pid = self.rng.choice(senders)
            kind = next(kind for kind, pids in kinds.items() if pid in pids)
            return kind, pid
        return kind, self.rng.choice(kinds[kind])

    @staticmethod
    def _all(kinds: dict[str, list[ProcessId]]) -> set[ProcessId]:
        return {pid for pids in kinds.values() for pid in pids}

    def kinds(self) -> dict[str, list[ProcessId]]:
        """Processes by what they are to this node; each kind that there is."""
        process, agreement = self.process, self.process.agreement
        coordinator = process.coordinator
        found = {
            "coordinator": [] if coordinator is None else [coordinator],
            "member": [p for p in process.pids if p != coordinator],
            "applicant": list(agreement.entrance.applicants.of),
            "contact": list(agreement.entrance.contacts),
            "gone": [*agreement.sides.lost, *self.moment.gone],
            "stranger": [STRANGER],
        }
        known: set[ProcessId] = {process.me}
        for kind, pids in found.items():
            found[kind] = [p for p in dict.fromkeys(pids) if p not in known]
            known.update(pids)
        return {kind: pids for kind, pids in found.items() if pids}

    # -- one lie ----------------------------------------------------------------------------------

    def lie(self) -> Receive | None:
        """The next one; None if the decoder refuses it."""
        rng = self.rng
        if self.packets and rng.random() < 0.8:
            some = self.own if self.own and rng.random() < 0.6 else self.packets
            packet = self._changed(rng.choice(some))
        else:
            packet = self._drawn()
        return self._through_the_wire(packet)

    def _changed(self, packet: Receive) -> Receive:
        """A packet that came, or will come, with something changed."""
        rng, what = self.rng, self.rng.random()
        header, group, era, payload = packet.header, packet.group, packet.era, packet.payload
        is_linked = isinstance(header, Linked)
        inner: Any = header.header if isinstance(header, Linked) else header
        if what < 0.6:
            inner = mutated(inner, self.seen, rng)
        elif what < 0.7:
            inner = self._timely(drawn(rng.choice(self._headers(group)), self.seen, rng))
        elif what < 0.78:
            era = self._era(era)
        elif what < 0.84 and self.groups:
            group = rng.choice((*self.groups, NO_GROUP, CLUSTER_GROUP))
        elif what < 0.9:
            payload = rng.choice((b"", payload[:-1], payload + b"x", LONG))
        if rng.random() < 0.1:
            era = self._era(era)
        if is_linked and rng.random() < 0.6:
            inner = self._link(inner)
        return Receive(self.pid, group, era, inner, payload)

    def _drawn(self) -> Receive:
        """A packet that was never sent, for one of the channels."""
        rng = self.rng
        groups = (CLUSTER_GROUP, *self.groups)
        group = rng.choice(groups)
        if self.moment.is_lossy and rng.random() < 0.1:
            lacks = drawn(tuple[int, ...], self.seen, rng)
            ack = LinkAck(drawn(int, self.seen, rng), lacks, drawn(int, self.seen, rng))
            return Receive(self.pid, LINK_GROUP, 0, ack)
        header = self._timely(drawn(rng.choice(self._headers(group)), self.seen, rng))
        view = self.process.view(group)
        era = 0 if view is None else view.era
        payload = rng.choice((b"", b"m", LONG)) if rng.random() < 0.5 else b""
        if self.moment.is_lossy and rng.random() < 0.3:
            header = self._link(header)
        return Receive(self.pid, group, era, header, payload)

    def _link(self, header: msgspec.Struct) -> msgspec.Struct:
        """The next packet of the link, mostly."""
        rng, link = self.rng, self.process.links.links.get(self.pid)
        if isinstance(header, Linked | LinkAck):
            return header
        self.linked += 1
        s, ack = (0, 0) if link is None else (link.r, link.s)
        s += self.linked
        if rng.random() < 0.2:
            s = drawn(int, self.seen, rng)
        if rng.random() < 0.2:
            ack = drawn(int, self.seen, rng)
        return Linked(s, ack, header)

    def _era(self, era: int) -> int:
        return min(MAX_ERA, max(0, self.rng.choice((*ERAS, era - 1, era + 1, era + 2))))

    def _timely(self, header: Any) -> Any:
        """The same for the view, the term and the attempt of this node, mostly: else it is void."""
        view = self.process.node_view
        if view is None or self.rng.random() < 0.3:
            return header
        timely = {
            "view": view.id,
            "ballot": self._ballot(),
            "term": self.process.changes.term + (self.rng.random() < 0.2),
            "attempt": self.process.changes.now.number,
        }
        fields = {
            name: timely[name]
            for name in header.__struct_fields__
            if name in timely and type(getattr(header, name)) is type(timely[name])
        }
        return msgspec.structs.replace(header, **fields)

    def _ballot(self) -> Ballot:
        """The one that was promised, or the next of this liar."""
        promised = self.process.agreement.acceptor.promised
        return promised if self.rng.random() < 0.6 else Ballot(promised.n + 1, self.pid)

    # -- the wire ---------------------------------------------------------------------------------

    def _headers(self, group: GroupId) -> Headers:
        """Those that the channel may carry, but for a link's."""
        entry = self.process.entry_of(group) if group > 0 else None
        if entry is None or entry.protocol not in self.process.groups.pages:
            return CLUSTER_HEADERS
        return headers_of(self.process.page(entry.protocol))

    def _through_the_wire(self, packet: Receive) -> Receive | None:
        """As it is decoded on the other side; now and then with bytes that were changed."""
        header = packet.header
        plain: Headers = self._headers(packet.group)
        inner = header.header if isinstance(header, Linked) else header
        if type(inner) not in plain:  # of another group, or of a link
            plain = (*plain, type(inner))
        codec = codec_of((*plain, Linked))
        try:
            tag, raw = codec.encode_header(header)
            if self.rng.random() < 0.05:
                raw = octets.spoilt(raw, self.rng)
            decoded = codec.decode(tag, raw)
        except FrameError:
            self.refused += 1
            return None
        except OverflowError:  # a number that no encoder takes
            return None
        return msgspec.structs.replace(packet, header=decoded)
