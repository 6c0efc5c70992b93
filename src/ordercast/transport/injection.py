"""Faults on purpose: what arrives is lost, doubled or overtaken. A testing aid."""

from __future__ import annotations

from random import Random

from ordercast.transport.settings import Datagrams


class Injection:
    """The faults of one node. Its draws depend on the seed and the node's name alone."""

    def __init__(self, settings: Datagrams, name: str) -> None:
        self.lost = 0  # thrown away
        self._loss = settings.inject_loss
        self._duplicates = settings.inject_duplicates
        self._reordering = settings.inject_reordering
        self._draw = Random(f"{settings.seed} {name}").random
        self._late: list[bytes] = []  # to be taken after the next one

    @staticmethod
    def is_asked_for(settings: Datagrams) -> bool:
        """Do these settings ask for any fault?"""
        shares = settings.inject_loss, settings.inject_duplicates, settings.inject_reordering
        return any(shares)

    def arrive(self, data: bytes) -> list[bytes]:
        """What this node takes when a datagram arrives."""
        if self._draw() < self._loss:
            self.lost += 1
            return []
        if self._draw() < self._reordering:
            self._late.append(data)
            return []
        taken = [data, *self._late]
        self._late.clear()
        if self._draw() < self._duplicates:
            taken.append(data)
        return taken
