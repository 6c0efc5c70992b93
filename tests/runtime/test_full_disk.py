"""The disk of a trace is full, or slow: the node goes on, says so once, and closes in time."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

import pytest

import ordercast as oc
from ordercast.runtime.diagnosis.diagnose import diagnose
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.trace.layout import run_folder, segment_path
from ordercast.trace.read import read_events
from ordercast.trace.recorder import Recorder
from ordercast.trace.seal import Unsealed


async def say(node: oc.Node, group: oc.Group, count: int) -> None:
    """One frame each, so that each is a write of its own."""
    for _ in range(count):
        await (await group.multicast(b"x")).ordered()
        node._presence._flush_records()


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "ordercast.trace.recorder"]


async def test_a_full_disk_is_told_once_shown_and_over_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = segment_path(run_folder(tmp_path, "r"), "alice#1", 1)
    async with oc.Node("alice", bootstrap=True, trace=tmp_path, run="r") as alice:
        first.symlink_to("/dev/full")
        group = await alice.join("g", order="total")
        await say(alice, group, 20)
        assert alice.stats()["recorder"]["failing"] == "No space left on device"
        lost = alice.stats()["recorder"]["lost"]
        assert lost >= 20
        [line] = told(caplog)
        assert "the trace of alice#1 cannot be written (No space left on device)" in line
        diagnosis = Diagnosis()
        await diagnose([alice.address], Subject(patience=20.0), diagnosis)
        [finding] = diagnosis.findings
        assert finding.code == "trace_fails" and "No space left on device" in finding.seen
        first.unlink()  # there is room again
        await say(alice, group, 3)
        assert alice.stats()["recorder"]["failing"] == ""
        [_, line] = told(caplog)
        assert line.startswith("the trace of alice#1 is written again: ")
        assert line.endswith(" records are missing")
    assert any(event.kind == "lost" for event in read_events(tmp_path))


async def test_a_disk_that_fails_again_and_again_is_not_told_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Recorder(tmp_path, run="r", process="alice#1", clock_ns=lambda: 1, seal=False)
    write = log._write
    for number in range(10):
        log._write = (lambda block: False) if number % 2 else write  # type: ignore[method-assign]
        log.join("g")
        log.flush()
    assert len(told(caplog)) == 2  # that it failed, and that it was over


async def test_a_trace_that_ends_on_a_full_disk_says_that_it_ends_early(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = segment_path(run_folder(tmp_path, "r"), "alice#1", 1)
    async with oc.Node("alice", bootstrap=True, trace=tmp_path, run="r") as alice:
        first.symlink_to("/dev/full")
        await say(alice, await alice.join("g", order="total"), 3)
    assert "ends early" in told(caplog)[1]


async def test_closing_does_not_wait_for_a_disk_that_hangs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = threading.Event()
    monkeypatch.setattr(Recorder, "seal", lambda recorder, seconds: hangs.wait())
    node = oc.Node("alice", bootstrap=True, trace=tmp_path, close_timeout=0.5)
    await node.start()
    await say(node, await node.join("g", order="total"), 3)
    try:
        async with asyncio.timeout(30):  # not for ever
            await node.aclose()
    finally:
        hangs.set()
    [line] = told(caplog)
    assert "not sealed: 1 (it takes longer than the node may take to close)" in line
    assert len(read_events(tmp_path)) > 3


async def test_closing_without_time_leaves_segments_and_says_how_many(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = []
    seal = Recorder.seal

    def note(recorder: Recorder, seconds: float) -> None:
        asked.append(seconds)
        seal(recorder, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "seal", note)
        async with oc.Node("a", bootstrap=True, trace=tmp_path, close_timeout=0.1) as node:
            await node.join("g", order="total")
    assert asked and max(asked) <= 0.1
    assert list(tmp_path.rglob("*.seg")) and len(read_events(tmp_path)) > 1
    assert (
        "the trace of a#1 has segments that are not sealed: 1 (there was no time"
        in told(caplog)[-1]
    )
    assert caplog.records[-1].levelno == logging.WARNING


def test_what_cannot_be_sealed_is_counted_with_its_reason(tmp_path: Path) -> None:
    from ordercast.trace.seal import seal_segments

    damaged = tmp_path / "damaged.seg"
    damaged.write_bytes(b"nonsense")
    left = seal_segments([damaged, tmp_path / "no such file"], seconds=20)
    assert (
        isinstance(left, Unsealed) and left.segments == 1 and "not a trace segment" in left.reason
    )
