"""Bytes written by an earlier version must stay readable for ever.

The files were written once by the encoder of their version. They are never written again: a
change that cannot read them needs a new wire version (docs/WIRE.md).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ordercast.wire.codec import ChannelCodec
from ordercast.wire.control import Hello, Refuse
from ordercast.wire.frame import Splitter
from ordercast.wire.messages import unpack_messages
from ordercast.wire.opening import split_opening

V1 = Path(__file__).parent / "recorded" / "v1"


class Plain(msgspec.Struct, frozen=True, array_like=True):
    n: int
    stamp: tuple[int, ...]
    text: str


class Link(msgspec.Struct, frozen=True, array_like=True):
    seq: int
    ack: int
    header: msgspec.Struct


OPENINGS = {
    "hello.bin": Hello(
        version_min=1,
        version_max=1,
        cluster="prices",
        name="alice",
        incarnation=1763175600,
        proof=b"\x00\x01proof",
        advertise="[::1]:7700",
    ),
    "hello_defaults.bin": Hello(cluster="c", name="\N{GREEK SMALL LETTER BETA}", incarnation=0),
    "refuse.bin": Refuse("cluster", "this is cluster 'prices', not 'lobby'"),
}

PLAIN = Plain(2**40, (0, 127, 128, 65536, 2**63 - 1), "h\N{LATIN SMALL LETTER E WITH ACUTE}llo")

FRAMES = {
    "frames.bin": [
        (1, 1, PLAIN, (1, [b"", b"a", b"b" * 300])),
        (2**32 - 1, 2**32 - 1, PLAIN, (2**63 - 1, [bytes(range(256))])),
        (3, 0, Link(5, 4, PLAIN), (0, [])),
    ],
}


def test_every_recorded_file_is_read_by_a_test():
    assert {path.name for path in V1.glob("*.bin")} == {*OPENINGS, *FRAMES}


@pytest.mark.parametrize("name", OPENINGS)
def test_a_recorded_opening_of_version_1_is_read(name):
    data = (V1 / name).read_bytes()
    assert split_opening(data) == (OPENINGS[name], len(data))


@pytest.mark.parametrize("name", FRAMES)
def test_recorded_frames_of_version_1_are_read(name):
    codec = ChannelCodec((Plain, Link))
    frames = Splitter(2**20).feed((V1 / name).read_bytes())
    assert FRAMES[name] == [
        (channel, era, codec.decode(tag, header), unpack_messages(payload))
        for channel, tag, era, header, payload in frames
    ]
