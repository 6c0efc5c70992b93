"""The segment file: what it accepts, what it cuts, what it refuses."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ordercast.errors import TraceError
from ordercast.trace.expand import segment_events
from ordercast.trace.layout import (
    file_safe,
    run_folder,
    run_of_folder,
    sealed_path,
    segment_number,
    segment_of_sealed,
    segment_path,
)
from ordercast.trace.schema import KINDS, Event
from ordercast.trace.segments import (
    FINISHED,
    KIND_CODES,
    NONE,
    RECORD,
    RECORD_KINDS,
    Head,
    Segment,
    decode_segment,
    encode_block,
    encode_head,
)
from ordercast.trace.tables import segment_table

HERE = Path("alice-00001.seg")

# As written on the day of version 1: one send of two messages, numbers 3 and 4.
GOLDEN_BLOCK = (
    "4e00000001000000f386ec25c31489a6010000000100000000000000000000000200000005000000"
    "0000000003000000000000000300000000000000e803000000000000ffffffffffffffffffffffff"
    "ffffffff5b22707269636573225d"
)
HEAD = encode_head(Head("r", "alice#1", 1))


def send_record(
    first: int, count: int = 1, *, group: int = 1, kind: int = KIND_CODES["send"]
) -> bytes:
    return RECORD.pack(kind, group, 0, 0, count, 5, 0, first, first, 1_000, NONE, NONE)


BLOCK_1 = encode_block(send_record(1) + send_record(2), ["prices"])
BLOCK_2 = encode_block(send_record(3), [])
BLOCK_3 = encode_block(send_record(4), ["other"])


def numbers_in(data: bytes) -> list[int | None]:
    return [event.index for event in segment_events(decode_segment(data, HERE))]


def test_every_kind_of_the_schema_has_a_code() -> None:
    assert sorted(RECORD_KINDS) == sorted(KINDS)


def test_blocks_are_read_in_order_and_an_empty_one_finishes_the_segment() -> None:
    segment = decode_segment(HEAD + BLOCK_1 + BLOCK_2 + FINISHED, HERE)
    assert segment.finished
    assert segment.head == Head("r", "alice#1", 1)
    assert [event.message for event in segment_events(segment)] == [
        "alice#1/prices/1",
        "alice#1/prices/2",
        "alice#1/prices/3",
    ]


def test_a_segment_cut_at_any_byte_of_its_last_block_gives_all_blocks_before() -> None:
    whole = HEAD + BLOCK_1 + BLOCK_2 + BLOCK_3
    for cut in range(len(HEAD + BLOCK_1 + BLOCK_2), len(whole)):
        assert numbers_in(whole[:cut]) == [1, 2, 3], cut
    assert numbers_in(whole) == [1, 2, 3, 4]


def test_a_segment_cut_anywhere_gives_a_prefix() -> None:
    whole = HEAD + BLOCK_1 + BLOCK_2 + FINISHED
    seen = [len(numbers_in(whole[:cut])) for cut in range(len(whole) + 1)]
    assert seen == sorted(seen)
    assert set(seen) == {0, 2, 3}


def test_a_last_block_that_a_power_cut_left_half_written_is_cut() -> None:
    spoilt = BLOCK_2[:-3] + b"\0\0\0"
    assert spoilt != BLOCK_2
    assert numbers_in(HEAD + BLOCK_1 + spoilt) == [1, 2]
    assert numbers_in(HEAD + BLOCK_1 + bytes(5000)) == [1, 2]


def test_any_changed_byte_before_the_last_block_is_refused() -> None:
    front, rest = HEAD + BLOCK_1, BLOCK_2 + BLOCK_3
    for at in range(len(front)):
        spoilt = bytearray(front + rest)
        spoilt[at] ^= 0x55
        with pytest.raises(TraceError, match=r"alice-00001\.seg"):
            decode_segment(bytes(spoilt), HERE)
            pytest.fail(f"byte {at} changed and nobody noticed")


def test_a_hole_of_zeros_before_good_blocks_is_refused() -> None:
    with pytest.raises(TraceError, match="damaged at byte"):
        decode_segment(HEAD + BLOCK_1 + bytes(len(BLOCK_2)) + BLOCK_3, HERE)


def test_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(TraceError, match="bytes follow the end"):
        decode_segment(HEAD + BLOCK_1 + FINISHED + BLOCK_2, HERE)


def test_an_unknown_version_is_refused_by_number() -> None:
    newer = HEAD[:8] + b"\x63\x00" + HEAD[10:]
    with pytest.raises(TraceError, match="version 99; this reader knows 1"):
        decode_segment(newer + BLOCK_1, HERE)


@pytest.mark.parametrize("data", [b"PAR1", b"{}", b"OCASTSEX" + HEAD[8:]])
def test_a_file_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(TraceError, match="not a trace segment"):
        decode_segment(data, HERE)


@pytest.mark.parametrize("change", [{"group": 7}, {"kind": 200}])
@pytest.mark.parametrize("read", [segment_events, segment_table])
def test_a_record_that_makes_no_sense_is_refused(
    read: Callable[[Segment], object], change: dict[str, int]
) -> None:
    data = HEAD + encode_block(send_record(1, **change), ["prices"])
    with pytest.raises(TraceError, match="damaged record"):
        read(decode_segment(data, HERE))


def test_bytes_recorded_with_version_1_stay_readable() -> None:
    recorded = bytes.fromhex(
        "4f434153545345470100"  # magic, version
        "2b0000009bd767dbb2b97775"  # length of the text, checksums
        "7b2272756e223a2272222c2270726f63657373223a22616c6963652331222c227365676d656e7422"
        "3a317d"
    )
    assert recorded == HEAD
    block = bytes.fromhex(GOLDEN_BLOCK)
    assert segment_events(decode_segment(recorded + block, HERE)) == [
        Event("alice#1", 3, "send", "alice#1/prices/3", "prices", "r", time=1_000, size=3),
        Event("alice#1", 4, "send", "alice#1/prices/4", "prices", "r", time=1_000, size=2),
    ]


@pytest.mark.parametrize(
    "name",
    ["alice#2", "a/b", "..", ".hidden", "_x", "Zoë", "a b", "%41", "A", "-", "~" * 9, "é" * 255],
)
def test_any_name_makes_a_safe_file_name_of_its_own(name: str, tmp_path: Path) -> None:
    path = segment_path(tmp_path, name, 3)
    path.write_bytes(b"")
    assert path.parent == tmp_path
    assert list(tmp_path.iterdir()) == [path]
    assert not path.name.startswith((".", "_"))
    assert segment_number(path) == (file_safe(name), 3)
    assert segment_number(sealed_path(path)) == (file_safe(name), 3)
    assert segment_of_sealed(sealed_path(path)) == path


def test_different_names_keep_different_file_names() -> None:
    names = ["a", "A", "a#1", "a%231", "a/1", "é" * 255, "é" * 254, "é" * 254 + "e", ".a", "%2Ea"]
    assert len({file_safe(name) for name in names}) == len(names)


@pytest.mark.parametrize("run", ["", "7", "a=b", "x/y", "2026-01-01 10:00"])
def test_the_run_is_read_back_from_the_folder_name(run: str, tmp_path: Path) -> None:
    assert run_of_folder(run_folder(tmp_path, run)) == run
    assert run_of_folder(tmp_path / "elsewhere") == ""
