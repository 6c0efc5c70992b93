"""What two nodes say to each other before and beside their groups.

`Hello` and `Refuse` open a connection (see `ordercast.wire.opening`) and must stay readable for
every later version. `Challenge` and `Proof` go before them where a cluster has a key. Other control
messages travel as headers of frames on channel 0: give their types to a `ChannelCodec`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ordercast.core.ids import MAX_NAME_BYTES, Identity, check_name
from ordercast.wire.frame import WIRE_VERSION

CONTROL_CHANNEL = 0
LINK_CHANNEL = 2**32 - 1  # acknowledgements of links, which belong to no group
CLUSTER_CHANNEL = 2**32 - 2  # packets of the cluster: who lives, who is in

MAX_PROOF_BYTES = 128
MAX_REFUSE_TEXT_BYTES = 512
SESSION_BYTES = 8
NONCE_BYTES = 32
DIGEST_BYTES = 32

Version = Annotated[int, msgspec.Meta(ge=0, le=255)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Hello(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The first thing each side sends: who speaks, and which versions of the format it knows."""

    version_min: Version = WIRE_VERSION
    version_max: Version = WIRE_VERSION
    cluster: str
    name: str
    incarnation: Count
    proof: bytes = b""  # that this Hello was said here and now, by one who has the key
    advertise: str = ""  # host:port where others reach this node; empty: nowhere
    session: bytes = b""  # stands in every datagram of this node; empty: it sends none

    def __post_init__(self) -> None:
        check_name("cluster", self.cluster)
        check_name("node", self.name)
        if self.advertise:
            check_name("advertised", self.advertise)
        if len(self.proof) > MAX_PROOF_BYTES:
            raise ValueError(
                f"the proof has {len(self.proof)} bytes; at most {MAX_PROOF_BYTES} are allowed"
            )
        if len(self.session) not in (0, SESSION_BYTES):
            raise ValueError(f"a session has {SESSION_BYTES} bytes, not {len(self.session)}")

    @property
    def identity(self) -> Identity:
        """The node that speaks."""
        return Identity(self.name, self.incarnation)


class Refuse(msgspec.Struct, frozen=True, array_like=True):
    """The answer instead of a Hello: this connection will not be. The sender closes it."""

    reason: str  # "version", "cluster", or a word of the node's own
    text: str  # for people

    def __post_init__(self) -> None:
        check_name("reason", self.reason)
        if len(self.text.encode(errors="surrogatepass")) > MAX_REFUSE_TEXT_BYTES:
            raise ValueError(f"a refusal has at most {MAX_REFUSE_TEXT_BYTES} bytes of text")
        if not self.text.isprintable():  # it goes into logs
            raise ValueError("the text of a refusal contains a control character")


class Challenge(msgspec.Struct, frozen=True, array_like=True):
    """A number that was never used before: the other side's proof must be about it."""

    nonce: bytes

    def __post_init__(self) -> None:
        if len(self.nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce has {NONCE_BYTES} bytes, not {len(self.nonce)}")


class Proof(msgspec.Struct, frozen=True, array_like=True):
    """That the sender has the key of the cluster. See `ordercast.wire.proof`."""

    digest: bytes

    def __post_init__(self) -> None:
        if len(self.digest) != DIGEST_BYTES:
            raise ValueError(f"a proof has {DIGEST_BYTES} bytes, not {len(self.digest)}")


Opening = Hello | Refuse | Challenge | Proof


def objection(mine: Hello, theirs: Hello) -> Refuse | None:
    """Why these two cannot talk, told to the other side; None if they can."""
    if mine.cluster != theirs.cluster:
        return Refuse(
            "cluster",
            f"this is cluster {shown(mine.cluster)}, not {shown(theirs.cluster)}",
        )
    if theirs.version_max < mine.version_min or mine.version_max < theirs.version_min:
        return Refuse(
            "version",
            f"this node speaks wire versions {mine.version_min} to {mine.version_max}, "
            f"not {theirs.version_min} to {theirs.version_max}",
        )
    return None


def shown(name: str) -> str:
    """A name, quoted, cut so that two of them fit into a refusal."""
    return repr(name) if len(name) <= MAX_NAME_BYTES // 8 else repr(name[:28] + "...")
