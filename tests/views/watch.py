"""What must hold between nodes, after every step."""

from __future__ import annotations

from ordercast.protocols.sequencing.seat import Entry, Stay


class Watch:
    """Looks at a node that has made a step, and at what the others have."""

    def __init__(self):
        self.frames = {}  # (group, era, number) -> (origin, n)

    def look(self, cluster, node):
        node.changes.check_placement(node.page)
        self._one_state(node)
        for g, seat in node.service.member.seats.items():
            for item in (*seat.queue, *seat.kept.values(), *seat.ahead.values()):
                if isinstance(item, Entry):
                    self._one_frame(g, item)
        for g, book in node.service.sequencer.books.items():
            for entry in book.frames.values():
                self._one_frame(g, entry)
            self._sequencer(cluster, node, g, book)
        for g, seat in node.service.member.seats.items():
            self._nothing_named_is_forgotten(cluster, node, g, seat)

    def _one_frame(self, g, entry):
        frame = (entry.origin, entry.n)
        known = self.frames.setdefault((g, entry.era, entry.N), frame)
        assert known == frame, "a number has one frame, at all nodes"

    def _one_state(self, node):
        joining = {g for g, s in node.service.member.seats.items() if s.stay is Stay.JOINING}
        prepared = node.changes.prepared
        coming = () if prepared is None else (x.row for x in prepared.groups)
        let_in = {row.entry.gid for row in coming if node.me in row.members}
        assert joining <= let_in, "a joiner is let in by a change that is prepared"

    def _sequencer(self, cluster, node, g, book):
        """What a sequencer believes of the members is true."""
        for p, other in cluster.nodes.items():
            rival = other.service.sequencer.books.get(g)
            if p != node.me and rival is not None:
                assert rival.era != book.era, "one node numbers an era"
            seat = other.service.member.seats.get(g)
            if seat is None or seat.stay is not Stay.IN or seat.era != book.era:
                continue
            assert p in book.done, "an era has one view"
            assert seat.got <= book.N, "only what was numbered is held"
            assert seat.stable <= book.stable <= book.N, "only what is stable is forgotten"
            assert book.held.get(p, seat.got) <= seat.got, "what is acknowledged is held"
            assert book.stable <= max(seat.got, seat.base), "what is stable is held by all"
            delivered = seat.delivered if seat.at[0] == seat.era else seat.base - 1
            assert book.done[p] <= max(delivered, seat.stable), "what is consumed was delivered"

    def _nothing_named_is_forgotten(self, cluster, node, g, seat):
        if not seat.queue or not isinstance(seat.queue[0], Entry):
            return
        for h, era, N in seat.queue[0].context:
            other = node.service.member.seats.get(h)
            if other is None or other.stay is not Stay.IN or other.era != era or other.got >= N:
                continue
            if node.service.views[h].leader not in cluster.living:
                continue  # it may be lost with its sequencer; then the era ends
            book = cluster.nodes[node.service.views[h].leader].service.sequencer.books.get(h)
            if book is not None and book.era == era:
                assert book.stable < N, "nothing is forgotten that is waited for"
