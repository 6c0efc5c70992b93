"""Which packet brought a delivery, and with how many header bytes."""

from __future__ import annotations

from ordercast.trace.brought import Brought

ME, OTHER = 1, 2


def copy_of(payload: bytes) -> bytes:
    """Equal bytes in an object of their own."""
    return bytes(bytearray(payload))


def delivery(payload: bytes, sender: int = OTHER) -> tuple[int, int, int, int, bytes]:
    return (7, sender, 1, 0, payload)


def test_a_delivery_has_the_header_bytes_of_its_packet() -> None:
    brought = Brought(ME)
    first, second = copy_of(b"same"), copy_of(b"same")
    brought.came(first, 21)
    brought.came(second, 33)
    assert brought.overhead(delivery(second)) == 33
    assert brought.overhead(delivery(first)) == 21


def test_the_first_copy_of_a_packet_counts() -> None:
    brought = Brought(ME)
    payload = copy_of(b"body")
    brought.came(payload, 21)
    brought.came(payload, 40)
    assert brought.overhead(delivery(payload)) == 21


def test_what_no_packet_brought_has_none() -> None:
    brought = Brought(ME)
    brought.came(copy_of(b"body"), 21)
    assert brought.overhead(delivery(copy_of(b"body"))) == 0


def test_a_message_of_ones_own_has_none_even_if_it_came_back() -> None:
    brought = Brought(ME)
    payload = copy_of(b"body")
    brought.came(payload, 21)
    assert brought.overhead(delivery(payload, sender=ME)) == 0


def test_beyond_the_limit_the_oldest_are_forgotten() -> None:
    brought = Brought(ME, limit=30)
    payloads = [copy_of(b"ten bytes.") for _ in range(5)]
    for payload in payloads:
        brought.came(payload, 21)
    assert [brought.overhead(delivery(p)) for p in payloads] == [0, 0, 21, 21, 21]


def test_what_was_delivered_makes_room() -> None:
    brought = Brought(ME, limit=30)
    for _ in range(9):
        payload = copy_of(b"ten bytes.")
        brought.came(payload, 21)
        assert brought.overhead(delivery(payload)) == 21
    waiting = [copy_of(b"ten bytes.") for _ in range(3)]
    for payload in waiting:
        brought.came(payload, 21)
    assert [brought.overhead(delivery(p)) for p in waiting] == [21, 21, 21]
