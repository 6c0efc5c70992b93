"""Headers: every type of every protocol survives the wire, and nothing else gets through."""

from __future__ import annotations

import tracemalloc
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import FrameError
from ordercast.process.headers import headers_of
from ordercast.protocols.registry import PROTOCOLS
from ordercast.reliability.link import LinkAck, Linked
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.frame import Splitter


class Note(msgspec.Struct, frozen=True, array_like=True):
    number: int
    text: str
    flag: bool = False


class Vector(msgspec.Struct, frozen=True, array_like=True):
    V: tuple[int, ...]
    pairs: tuple[tuple[int, bytes], ...]


class Empty(msgspec.Struct, frozen=True, array_like=True):
    pass


class Named(msgspec.Struct, frozen=True):
    """A header that travels as a map."""

    n: int
    note: Note | None = None


SAMPLE = (Note, Vector, Empty, Named)
LINKED = (*SAMPLE, Linked, LinkAck)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a header's field."""
    if hint is int:
        return st.integers(0, 2**63 - 1)
    if hint is bytes:
        return st.binary(max_size=20)
    if hint is str:
        return st.text(st.characters(codec="utf-8"), max_size=10)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return structs(hint)
    if get_origin(hint) is tuple and get_args(hint)[-1] is Ellipsis:
        return st.lists(values(get_args(hint)[0]), max_size=5).map(tuple)
    if get_origin(hint) is tuple:
        return st.tuples(*map(values, get_args(hint)))
    return st.from_type(hint) if not get_args(hint) else st.one_of(*map(values, get_args(hint)))


def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy[msgspec.Struct]:
    """Any header of that type."""
    hints = get_type_hints(kind)
    return st.builds(kind, *(values(hints[name]) for name in kind.__struct_fields__))


def through_the_wire(codec: ChannelCodec, header: msgspec.Struct) -> msgspec.Struct:
    frame = codec.encode(5, 9, header, b"payload")
    [(channel, tag, era, raw, payload)] = Splitter(2**20).feed(frame)
    assert (channel, era, payload) == (5, 9, b"payload")
    assert codec.headers[tag] is type(header)
    return codec.decode(tag, raw)


@pytest.mark.parametrize("kind", SAMPLE)
@given(st.data())
def test_a_header_comes_back_as_it_was(kind, data):
    header = data.draw(structs(kind))
    assert through_the_wire(ChannelCodec(SAMPLE), header) == header


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
def test_every_header_of_every_protocol_comes_back_as_it_was(protocol, data):
    headers = headers_of(PROTOCOLS[protocol])
    header = data.draw(st.one_of(*map(structs, headers)))
    assert through_the_wire(ChannelCodec(headers), header) == header


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_sends_its_headers_as_arrays_so_that_fields_may_be_added(protocol):
    for header in headers_of(PROTOCOLS[protocol]):
        assert header.__struct_config__.array_like, header


@given(st.integers(0, 2**63), st.integers(0, 2**63), st.one_of(*map(structs, SAMPLE)))
def test_a_wrapped_header_comes_back_inside_its_wrapper(s, ack, inner):
    header = Linked(s, ack, inner)
    assert through_the_wire(ChannelCodec(LINKED), header) == header


def test_a_wrapper_of_a_wrapper_is_refused():
    twice = Linked(1, 0, Linked(2, 0, Empty()))
    codec = ChannelCodec(LINKED)
    tag, raw = codec.encode_header(twice)
    with pytest.raises(FrameError, match="wraps one that wraps another"):
        codec.decode(tag, raw)


@pytest.mark.parametrize(
    "inner", [(99, b"\x90"), (-1, b"\x91\x01"), (0, b"junk"), ("0", b"\x90"), None]
)
def test_a_wrapper_around_something_malformed_is_refused(inner):
    raw = msgspec.msgpack.encode((1, 0, inner))
    with pytest.raises(FrameError):
        ChannelCodec(LINKED).decode(LINKED.index(Linked), raw)


def test_an_unknown_tag_is_refused_by_number():
    with pytest.raises(FrameError, match="no header has the tag 4 on this channel"):
        ChannelCodec(SAMPLE).decode(4, b"\x90")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x92",
        b"\x90",
        msgspec.msgpack.encode(("one", "text")),
        msgspec.msgpack.encode((1, 2)),
        msgspec.msgpack.encode((1, "text")) + b"\x00",
        b"\x92\x01\xa1\xff",
        msgspec.msgpack.encode((1, "text", False))[:-1],
    ],
    ids=["empty", "cut", "short", "type", "type2", "trailing", "utf8", "truncated"],
)
def test_a_malformed_header_is_refused_and_named(raw):
    with pytest.raises(FrameError, match="the header Note is malformed"):
        ChannelCodec(SAMPLE).decode(0, raw)


def test_deep_nesting_is_refused_like_any_other_nonsense():
    with pytest.raises(FrameError):
        ChannelCodec(SAMPLE).decode(0, b"\x94\x01\xa1a\xc2" + b"\x91" * 100_000 + b"\xc0")


@pytest.mark.parametrize("start", [b"\xdd\xff\xff\xff\xff", b"\x92\xdd\xff\xff\xff\xff\x01"])
def test_a_claimed_count_of_4_billion_takes_no_room(start):
    tracemalloc.start()
    with pytest.raises(FrameError):
        ChannelCodec(SAMPLE).decode(1, start + bytes(1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@given(st.sampled_from(range(len(LINKED))), st.binary(max_size=60))
def test_random_bytes_give_a_header_or_a_frame_error_and_nothing_else(tag, noise):
    try:
        header = ChannelCodec(LINKED).decode(tag, noise)
    except FrameError:
        return
    assert type(header) is LINKED[tag]


@given(st.one_of(*map(structs, SAMPLE)), st.data())
def test_a_changed_byte_gives_a_header_of_that_type_or_a_frame_error(inner, data):
    codec = ChannelCodec(LINKED)
    header = data.draw(st.sampled_from([inner, Linked(3, 4, inner)]))
    tag, raw = codec.encode_header(header)
    changed = bytearray(raw)
    changed[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = codec.decode(tag, bytes(changed))
    except FrameError:
        return
    assert type(decoded) is type(header)


def test_a_later_version_may_append_a_field_with_a_default():
    class NoteOfTomorrow(msgspec.Struct, frozen=True, array_like=True):
        number: int
        text: str
        flag: bool = False
        added: int = 7

    today, tomorrow = ChannelCodec((Note,)), ChannelCodec((NoteOfTomorrow,))
    new = tomorrow.encode_header(NoteOfTomorrow(1, "a", True, 8))
    assert today.decode(*new) == Note(1, "a", True)
    old = today.encode_header(Note(1, "a", True))
    assert tomorrow.decode(*old) == NoteOfTomorrow(1, "a", True, 7)
