"""Bytes that are not what they should be: every decoder answers with a `FrameError` or a message.

spoilt(raw, rng)          the same bytes with something changed
readers()                 every decoder of the wire and of datagrams, with honest bytes for it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from struct import pack

import msgspec

from fuzz.mutate import EXTREMES, Seen, drawn
from ordercast.errors import FrameError
from ordercast.process.headers import CLUSTER_HEADERS, Headers, headers_of
from ordercast.protocols.registry import PROTOCOLS
from ordercast.reliability.link import LinkAck, Linked
from ordercast.runtime import control
from ordercast.transport import datagram
from ordercast.transport.reassembly import Reassembly
from ordercast.wire import discovery, opening, pulse
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.control import Challenge, Hello, Proof, Refuse
from ordercast.wire.frame import Splitter
from ordercast.wire.messages import pack_messages, unpack_messages

KEY = b"k" * 16
MAX_FRAME = 1 << 16
MARKERS = bytes((0xC0, 0xC1, 0xCA, 0xCB, 0xC6, 0xCE, 0xCF, 0xD3, 0xDB, 0xDC, 0xDD, 0xDF, 0x9F))
"""Of msgpack: nothing, floats, long bytes and texts, large numbers, long arrays and maps."""
DEEP = b"\x91" * 2000  # arrays in arrays

Reader = tuple[str, Callable[[bytes], object], list[bytes]]
"""(name, decoder, honest bytes)"""


def spoilt(raw: bytes, rng: Random) -> bytes:
    """One to three changes: bits, bytes, markers, cuts, repeats, numbers, depth."""
    result = raw
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(result) + 1)
        end = min(len(result), at + rng.choice((1, 1, 2, 4, 8)))
        what = rng.randrange(7)
        if what == 0 and at < len(result):
            middle = bytes((result[at] ^ (1 << rng.randrange(8)),))
            end = at + 1
        elif what == 1:
            middle = bytes((rng.choice(MARKERS),))
        elif what == 2:
            middle = b""
        elif what == 3:
            middle, end = b"", len(result)
        elif what == 4:
            middle = result[at:end] * 3
        elif what == 5:
            middle = pack(">q", rng.choice(EXTREMES))[-rng.choice((1, 2, 4, 8)) :]
        else:
            middle = DEEP if rng.random() < 0.2 else rng.randbytes(3)
        result = result[:at] + middle + result[end:]
    return result


def try_reader(reader: Reader, rng: Random) -> bytes:
    """Hand it one piece of nonsense; anything but a `FrameError` gets through."""
    _, decode, honest = reader
    raw = spoilt(rng.choice(honest), rng) if rng.random() < 0.95 else rng.randbytes(40)
    try:
        decode(raw)
    except FrameError:
        pass
    except Exception as error:
        error.add_note(f"decoding {raw!r}")
        raise
    return raw


def readers() -> list[Reader]:
    """All of them."""
    return [*_channels(), *_datagrams(), *_beside()]


def _channels() -> Iterator[Reader]:
    """Frames, as they come in over a connection, in two reads."""
    rng, seen = Random("headers"), Seen()
    kinds: dict[str, Headers] = {
        name: (*headers_of(page), Linked) for name, page in PROTOCOLS.items()
    }
    kinds |= {"cluster": CLUSTER_HEADERS, "links": (LinkAck,), "control": control.CONTROLS}
    for name, headers in kinds.items():
        codec = ChannelCodec(headers)
        plain = [header for header in headers if header is not Linked]
        made = [header for kind in plain for header in _made(kind, seen, rng)]
        if Linked in headers:
            made += [Linked(1, 1, header) for header in made[:6]]
        frames = [codec.encode(1, 1, header, b"payload") for header in made]
        yield f"frames of {name}", partial(_read_frames, codec), frames


def _made(kind: type[msgspec.Struct], seen: Seen, rng: Random) -> Iterator[msgspec.Struct]:
    """A few that it takes itself: some types look at their fields."""
    for _ in range(20):
        try:
            yield drawn(kind, seen, rng)
        except ValueError:
            continue
        if rng.random() < 0.3:
            return


def _read_frames(codec: ChannelCodec, raw: bytes) -> None:
    splitter, half = Splitter(MAX_FRAME), len(raw) // 2
    for part in (raw[:half], raw[half:]):
        for _, tag, _, header, _ in splitter.feed(part):
            codec.decode(tag, header)
    assert splitter.pending <= MAX_FRAME


def _datagrams() -> Iterator[Reader]:
    audience = datagram.pack_audience((1, 2, 9)) or b""
    bodies = {
        datagram.FRAMES: b"frames",
        datagram.FRAGMENT: datagram.pack_piece(b"x" * 900, 1, 1, 300),
        datagram.WANT: datagram.pack_want(1, (0, 2)),
        datagram.SEEN: datagram.NUMBER.pack(7),
        datagram.PROBE: b"",
    }
    honest = [
        datagram.pack_datagram(kind, 1, b"session!", 7, audience, body)
        for kind, body in bodies.items()
    ]
    yield "datagrams", partial(_read_datagram, Reassembly(MAX_FRAME, 4 * MAX_FRAME)), honest


def _read_datagram(reassembly: Reassembly, raw: bytes) -> None:
    kind, _, _, _, audience, body = datagram.read_datagram(raw)
    datagram.is_addressed(audience, 2)
    if kind == datagram.FRAGMENT:
        reassembly.add(*datagram.read_piece(body), now=0.0)
        assert reassembly.used <= reassembly.max_bytes
        reassembly.missing(1.0, 0.5, 16)
    elif kind == datagram.WANT:
        datagram.read_want(body)
    elif kind == datagram.SEEN:
        datagram.read_seen(body)


def _beside() -> Iterator[Reader]:
    """What is read before and beside frames."""
    hello = Hello(cluster="c", name="n", incarnation=1, advertise="h:1")
    spoken = (hello, Refuse("version", "no"), Challenge(b"n" * 32), Proof(b"d" * 32))
    yield "openings", opening.split_opening, [opening.pack_opening(said) for said in spoken]
    nonce = b"n" * 16
    question = discovery.pack_datagram(discovery.Question(nonce, "c"), b"")
    answer = discovery.pack_datagram(discovery.Answer(nonce, "c", "n", "host:1"), b"")
    yield "questions", _question, [question]
    yield "answers", _answer, [answer]
    yield "pulses", _pulse, [pulse.pack_pulse(pulse.Pulse(1, 2, 3), KEY)]
    yield "messages", unpack_messages, [pack_messages(1, [b"a", b"bc"]), pack_messages(1 << 62, [])]


def _question(raw: bytes) -> discovery.Question:
    return discovery.unpack_datagram(raw, discovery.Question, b"")


def _answer(raw: bytes) -> discovery.Answer:
    return discovery.unpack_datagram(raw, discovery.Answer, b"")


def _pulse(raw: bytes) -> None:
    pulse.sender_of(raw)
    pulse.unpack_pulse(raw, KEY)
