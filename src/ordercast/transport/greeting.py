"""The opening as one side of a connection sees it: what it says, and what it lets the other say.

    without a key    C: Hello      A: Hello | Refuse
    with a key       C: Challenge  A: Challenge  C: Proof  A: Proof  C: Hello  A: Hello | Refuse

C connects, A accepts. With a key, neither side says its name before the other has proved that it
has the key, and C proves it first: a stranger without the key gets a random number and no more.
"""

from __future__ import annotations

import secrets

import msgspec

from ordercast.errors import PeerError
from ordercast.wire.control import NONCE_BYTES, Challenge, Hello, Opening, Proof
from ordercast.wire.proof import Side, content_of, prove, proves

OTHER: dict[Side, Side] = {"connects": "accepts", "accepts": "connects"}


class Greeting:
    """One opening. It keeps two nonces of the connection, and nothing else of the other side."""

    def __init__(self, key: bytes, side: Side) -> None:
        self.trusts = not key  # the other side may say who it is, and be told who we are
        self._key = key
        self._side: Side = side
        self._mine = secrets.token_bytes(NONCE_BYTES) if key else b""
        self._theirs = b""

    def first(self, hello: Hello) -> Opening:
        """What the side that connects says at once."""
        return Challenge(self._mine) if self._key else hello

    def signed(self, hello: Hello) -> Hello:
        """Our Hello, good for this connection only."""
        if not self._key:
            return hello
        return msgspec.structs.replace(hello, proof=self._prove(self._side, content_of(hello)))

    def check(self, hello: Hello) -> None:
        """Was it said for this connection, by one who has the key?"""
        if not self.trusts:
            raise PeerError("it said hello before it proved that it has the key")
        wanted = self._prove(OTHER[self._side], content_of(hello)) if self._key else hello.proof
        if not proves(hello.proof, wanted):
            raise PeerError("the proof in its hello is wrong: somebody changed it on the way")

    def answer(self, message: Challenge | Proof, hello: Hello) -> Opening:
        """What we say to that."""
        if not self._key:
            raise PeerError("it asks for a proof of the key, and this node has no key (key=)")
        if isinstance(message, Challenge):
            return self._challenged(message)
        return self._convinced(message, hello)

    def _challenged(self, challenge: Challenge) -> Opening:
        if self._theirs:
            raise PeerError("it sent a second challenge")
        self._theirs = challenge.nonce
        if self._side == "accepts":
            return Challenge(self._mine)
        return Proof(self._prove(self._side))

    def _convinced(self, proof: Proof, hello: Hello) -> Opening:
        if not self._theirs or self.trusts:
            raise PeerError("it sent a proof that was not asked for")
        if not proves(proof.digest, self._prove(OTHER[self._side])):
            raise PeerError(
                "its proof is wrong: it has another key, or repeats another node's proof"
            )
        self.trusts = True
        return Proof(self._prove(self._side)) if self._side == "accepts" else self.signed(hello)

    def _prove(self, side: Side, content: bytes = b"") -> bytes:
        nonces = (self._mine, self._theirs)
        connecting, accepting = nonces if self._side == "connects" else nonces[::-1]
        return prove(self._key, side, connecting, accepting, content)
