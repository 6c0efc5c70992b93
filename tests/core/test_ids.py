"""Names of processes and groups."""

from __future__ import annotations

import pytest

from ordercast.core.ids import MAX_NAME_BYTES, Identity, check_name


def test_an_identity_reads_as_name_and_start() -> None:
    assert str(Identity("alice", 2)) == "alice#2"


def test_two_starts_of_a_name_are_two_processes_in_order() -> None:
    assert Identity("alice", 1) != Identity("alice", 2)
    assert Identity("alice", 1) < Identity("alice", 2) < Identity("bob", 1)


@pytest.mark.parametrize("name", ["a", "naïve", "two words", "é" * 127, "x" * MAX_NAME_BYTES])
def test_a_printable_name_of_at_most_255_bytes_is_accepted(name: str) -> None:
    assert check_name("node", name) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "must not be empty"),
        ("x" * 256, "256 bytes"),
        ("é" * 128, "256 bytes"),
        ("a\nb", "control character"),
        ("a\x00", "control character"),
        ("\udc80", "control character"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_name("node", name)


def test_a_name_that_is_no_text_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="a group name is a str, not int"):
        check_name("group", 3)
