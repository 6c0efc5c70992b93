"""Answers the questions of `discovery`: tells newcomers where this node is.

An answer goes to the asker alone. Of a large cluster only a few nodes answer each question, chosen
by lot, and each node answers a bounded number per second: neither a crowd of newcomers nor a
stranger with a false return address makes the cluster shout.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from ordercast.errors import FrameError
from ordercast.transport.contract import Address
from ordercast.transport.discovery import SOCKET_BUFFER, Discovery, read_waiting
from ordercast.transport.sockets import multicast_socket, unicast_socket
from ordercast.wire.control import Hello
from ordercast.wire.discovery import Answer, Question, pack_datagram, unpack_datagram

ANSWERERS = 4  # nodes that answer a question, on average, in a cluster of more
ANSWERS_PER_S = 100  # of one node; as many at once after a quiet second


class Answerer:
    """Tells newcomers where this node is, as long as it is in a cluster."""

    def __init__(
        self, settings: Discovery, bound_to: str, hello: Hello, key: bytes, nodes: Callable[[], int]
    ) -> None:
        """`nodes()` counts the nodes of the cluster; 0 while this node is in none."""
        interface = settings.interface_of(bound_to)
        self.answered = 0
        self.refused = 0  # malformed, or without proof of the key
        self.limited = 0  # questions that came too fast to be answered
        self._hello = hello
        self._key = key
        self._nodes = nodes
        self._loop = asyncio.get_running_loop()
        self._allowance = Allowance(ANSWERS_PER_S, self._loop.time())
        self._hears = multicast_socket(settings.carrier, interface)
        try:
            self._speaks = unicast_socket((interface, 0), SOCKET_BUFFER)
        except OSError:
            self._hears.close()
            raise
        self._loop.add_reader(self._hears, self._drain)

    def close(self) -> None:
        """Answer no more questions. May be called again."""
        if self._hears.fileno() >= 0:
            self._loop.remove_reader(self._hears)
            self._hears.close()
            self._speaks.close()

    def stats(self) -> dict[str, int]:
        """Counts, and the limit that they are under."""
        return {
            "answered": self.answered,
            "refused": self.refused,
            "limited": self.limited,
            "max_answers_per_second": ANSWERS_PER_S,
        }

    def _drain(self) -> None:
        for data, sender in read_waiting(self._hears):
            try:
                question = unpack_datagram(data, Question, self._key)
            except FrameError:
                self.refused += 1
            else:
                self._answer(question, sender)

    def _answer(self, question: Question, sender: Address) -> None:
        nodes = self._nodes()
        if nodes * random.random() >= ANSWERERS or not nodes:
            return
        if not self._allowance.take(self._loop.time()):
            self.limited += 1
            return
        hello = self._hello
        answer = Answer(question.nonce, hello.cluster, hello.name, hello.advertise)
        try:
            self._speaks.sendto(pack_datagram(answer, self._key), sender)
            self.answered += 1
        except OSError:  # a false return address, or no room: it will ask again
            self.refused += 1


class Allowance:
    """So many per second, and as many at once after a quiet second."""

    def __init__(self, per_second: int, now: float) -> None:
        self._rate = per_second
        self._left = float(per_second)
        self._at = now

    def take(self, now: float) -> bool:
        """Whether one more may be done."""
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
