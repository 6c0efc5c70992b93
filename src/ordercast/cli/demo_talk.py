"""What each member process of the demo does: talk in its groups, and answer what it hears."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

from ordercast.errors import NodeEnded
from ordercast.runtime.group import Group
from ordercast.runtime.items import Message
from ordercast.runtime.worker import Worker

ANSWER_CHANCE = 0.1  # of a question, by each who hears it
PAUSE_SECONDS = 0.002  # between two questions of a member


class Talk:
    """One member's part. Answers are what makes one message depend on another."""

    def __init__(self, worker: Worker, seed: int) -> None:
        self.worker = worker
        self.rng = Random(seed)
        self.heard: Counter[str] = Counter()
        self.listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        try:
            async for event in self.worker.node:
                if isinstance(event, Message):
                    self.heard[event.group] += 1
                    if event.body.startswith(b"?") and self.rng.random() < ANSWER_CHANCE:
                        await self._where_to_answer(event).multicast(b"!" + event.body[1:])
        except NodeEnded:
            return

    def _where_to_answer(self, question: Message) -> Group:
        """In any group of the same order: what holds across groups must hold for the answer."""
        groups = self.worker.groups
        order = groups[question.group].order
        return self.rng.choice([group for group in groups.values() if group.order == order])

    async def ask(self, messages: int) -> None:
        """Questions to each group in turn; done when all of them are everywhere."""
        groups = list(self.worker.groups.values())
        receipts = []
        for number in range(messages):
            group = groups[number % len(groups)]
            receipts.append(await group.multicast(b"?%d" % number))
            await asyncio.sleep(PAUSE_SECONDS)
        for receipt in receipts[-len(groups) :]:
            await receipt.stable()


async def begin(worker: Worker, seed: int) -> None:
    """Start listening."""
    worker.talk = Talk(worker, seed)  # type: ignore[attr-defined]


async def ask(worker: Worker, messages: int) -> dict[str, Any]:
    """Ask, and tell how much was heard so far."""
    talk: Talk = worker.talk  # type: ignore[attr-defined]
    await talk.ask(messages)
    return dict(talk.heard)
