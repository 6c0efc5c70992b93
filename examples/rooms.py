"""A chat over several rooms: nobody sees an answer before its question, in no room.

Rooms are groups with order="causal", and overlap: a person may be in several. Alice asks in one
room; Bob, who is in two, reads it and answers in the other. Whoever is in both rooms sees the
question first, however slowly it travels, because Bob had seen it when he answered. For that the
rooms are read from the one stream of the node, not room by room.

It promises: what a person had seen when they said something is seen before it, by everybody who
sees both. Who comes later gets the last lines of the room first.
It does not promise that two lines which know nothing of each other come in the same order to all.
That is what order="total" is for; it costs a round trip more.

    python examples/rooms.py                                  a demonstration on a lossy network
    python examples/rooms.py --name alice                     one person ...
    python examples/rooms.py --name bob --join HOST:PORT      ... and another
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from terminal import lines, run

import ordercast as oc

REMEMBERED = 100  # lines of a room that a newcomer gets


class Line(NamedTuple):
    """What somebody said."""

    id: str
    room: str
    person: str
    text: str
    answers: str | None  # the id of another line, of any room

    def __str__(self) -> str:
        about = f" @{self.answers}" if self.answers else ""
        return f"[{self.room}] {self.id}{about}: {self.text}"


class Chat:
    """One person in some rooms. For a node with codec="json"."""

    def __init__(self, node: oc.Node, *, order: str = "causal") -> None:
        self._node = node
        self._order = order
        self._rooms: dict[str, oc.Group] = {}
        self._number = 0
        self.seen: dict[str, deque[Line]] = {}  # by room, the newest last

    async def enter(self, room: str) -> list[Line]:
        """Be in this room from now on; its last lines."""
        if room in self.seen:
            raise ValueError(f"in room {room!r} already, or about to be")
        seen = self.seen[room] = deque(maxlen=REMEMBERED)

        def last_lines() -> bytes:
            return json.dumps(list(seen)).encode()

        def remember(state: bytes) -> None:
            seen.clear()
            seen.extend(Line(*line) for line in json.loads(state))

        state = oc.State(get=last_lines, set=remember)
        try:
            self._rooms[room] = await self._node.join(room, order=self._order, state=state)
        except BaseException:
            del self.seen[room]
            raise
        return list(seen)

    async def leave(self, room: str) -> None:
        """Be out of it."""
        await self._room(room).leave()
        del self._rooms[room], self.seen[room]

    async def say(self, room: str, text: str, answers: Line | str | None = None) -> str:
        """To all in this room; the id of the line."""
        group = self._room(room)
        self._number += 1
        line = f"{self._node.name}-{self._node.incarnation}.{self._number}"
        await group.multicast([line, text, answers.id if isinstance(answers, Line) else answers])
        return line

    def _room(self, room: str) -> oc.Group:
        if room not in self._rooms:
            raise ValueError(f"not in room {room!r}; in {', '.join(self._rooms) or 'none'}")
        return self._rooms[room]

    async def listen(self) -> AsyncIterator[Line | oc.View]:
        """All lines of all rooms, in one order, and who comes and goes. Over outages, too.

        Listen from the start: the last lines for newcomers are those that were taken from here.
        """
        before: oc.NodeOut | None = None
        while True:
            try:
                async for event in self._node:
                    if isinstance(event, oc.View):
                        yield event
                    elif isinstance(event, oc.Message) and (line := self._line(event)):
                        yield line
                return
            except oc.NodeOut as reason:  # the node comes back by itself
                if reason is before:  # ... or never does, with rejoin=False
                    raise
                before = reason

    def _line(self, message: oc.Message) -> Line | None:
        match message.body:
            case [str(id), str(text), str() | None as answers]:
                line = Line(id, message.group, message.sender, text, answers)
                if message.group in self.seen:  # not left in the meantime
                    self.seen[message.group].append(line)
                return line
        return None  # of another program


async def answer(bob: Chat) -> None:
    """Answer every line of one room in another."""
    async for event in bob.listen():
        if isinstance(event, Line) and event.room == "python":
            await bob.say("jobs", f"we know: {event.text}", answers=event)


class Reader:
    """Listens, and counts answers that came before their questions."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.answers = 0
        self.too_early = 0

    async def read(self) -> None:
        known: set[str] = set()
        async for event in self.chat.listen():
            if isinstance(event, Line):
                known.add(event.id)
                if event.answers is not None:
                    self.answers += 1
                    self.too_early += event.answers not in known


async def converse(order: str, questions: int, **options: Any) -> int:
    """Alice asks in one room, Bob answers in another. How often does Carol see that too early?"""
    async with oc.LocalCluster(3, in_process=True, codec="json", **options) as cluster:
        alice, bob, carol = chats = [Chat(node, order=order) for node in cluster.nodes]
        reader = Reader(carol)
        reading = [
            asyncio.ensure_future(coroutine)
            for coroutine in (Reader(alice).read(), answer(bob), reader.read())
        ]
        for chat in chats:
            await chat.enter("python")
        for chat in (bob, carol):
            await chat.enter("jobs")
        for number in range(questions):
            await alice.say("python", f"question {number}")
            while reader.answers <= number:
                await asyncio.sleep(0.001)
    await asyncio.gather(*reading)  # they end when the nodes are closed
    return reader.too_early


async def come_late() -> None:
    """Two lines are said before the second person comes."""
    async with oc.LocalCluster(2, in_process=True, codec="json") as cluster:
        alice, late = (Chat(node) for node in cluster.nodes)
        reading = [asyncio.ensure_future(Reader(chat).read()) for chat in (alice, late)]
        await alice.enter("python")
        for text in ("is anybody here?", "nobody, it seems"):
            await alice.say("python", text)
        print("who comes late reads:", *await late.enter("python"), sep="\n  ")
    await asyncio.gather(*reading)


async def demo() -> None:
    """A network that loses one datagram in five, under two orders; then one who comes late."""
    lossy = oc.Udp(inject_loss=0.2, seed=7)
    for order in ("fifo", "causal"):
        too_early = await converse(order, questions=100, transport=lossy, retry_ms=10)
        print(f"order={order!r}: {too_early} of 100 answers were seen before their questions")
    await come_late()


async def session(node: oc.Node) -> None:
    """One person at the terminal."""
    chat = Chat(node)
    usage = "/enter ROOM | /leave ROOM | ROOM TEXT | ROOM @LINE TEXT (an answer)"
    print(usage, flush=True)
    showing = asyncio.ensure_future(show(chat))
    async for words in lines():
        try:
            match words:
                case ["/enter", room]:
                    for line in await chat.enter(room):
                        print(line, flush=True)
                case ["/leave", room]:
                    await chat.leave(room)
                case [room, word, *text] if text and word.startswith("@"):
                    await chat.say(room, " ".join(text), answers=word[1:])
                case [room, *text] if text and not room.startswith("/"):
                    await chat.say(room, " ".join(text))
                case _:
                    print(usage, flush=True)
        except (oc.OrdercastError, ValueError) as wrong:
            print(wrong, flush=True)
    showing.cancel()


async def show(chat: Chat) -> None:
    """Print what is said, and who comes and goes."""
    async for event in chat.listen():
        if isinstance(event, Line):
            print(event, flush=True)
        elif event.members:
            print(f"[{event.group}] here are {', '.join(event.members)}", flush=True)


if __name__ == "__main__":
    run(__doc__, demo, session)
