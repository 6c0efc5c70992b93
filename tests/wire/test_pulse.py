"""Pulses: made by whoever has the key, and by nobody else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.wire.pulse import KEY_BYTES, SIZE, Pulse, pack_pulse, sender_of, unpack_pulse

keys = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)
pulses = st.builds(
    Pulse,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
)


@given(pulses, keys)
def test_a_pulse_is_read_as_it_was_made(pulse: Pulse, key: bytes) -> None:
    datagram = pack_pulse(pulse, key)
    assert len(datagram) == SIZE
    assert sender_of(datagram) == pulse.sender
    assert unpack_pulse(datagram, key) == pulse


@given(pulses, keys, keys)
def test_a_pulse_made_with_another_key_says_nothing(pulse: Pulse, key: bytes, other: bytes) -> None:
    assert key == other or unpack_pulse(pack_pulse(pulse, key), other) is None


@given(pulses, keys, st.data())
def test_a_pulse_that_was_changed_says_nothing(
    pulse: Pulse, key: bytes, data: st.DataObject
) -> None:
    datagram = bytearray(pack_pulse(pulse, key))
    place = data.draw(st.integers(4, SIZE - 1))
    datagram[place] ^= data.draw(st.integers(1, 255))
    assert unpack_pulse(bytes(datagram), key) is None


@given(st.binary(max_size=2 * SIZE))
def test_other_datagrams_are_no_pulses(datagram: bytes) -> None:
    is_pulse = len(datagram) == SIZE and datagram[:4] == b"OCPU"
    assert (sender_of(datagram) is None) is not is_pulse


def test_a_stall_longer_than_the_field_is_told_as_the_longest() -> None:
    key = bytes(KEY_BYTES)
    told = unpack_pulse(pack_pulse(Pulse(1, 2, 2**40), key), key)
    assert told == Pulse(1, 2, 2**32 - 1)
