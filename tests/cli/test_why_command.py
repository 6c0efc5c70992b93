"""`ordercast why`, run as a user runs it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import ordercast as oc
from ordercast.cli.app import app
from ordercast.cli.exits import BAD_INPUT
from ordercast.simulation import Constant, Crash, SimulationConfig, Workload, simulate
from ordercast.trace.holds import HoldNote, WaitsFor, encode_note
from ordercast.trace.schema import Event
from ordercast.trace.write import write_jsonl

ORDERCAST = str(Path(sys.executable).parent / "ordercast")


def why(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["why", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    config = SimulationConfig(
        protocol="fifo",
        members=3,
        messages=20,
        loss=0.2,
        trace="protocol",
        workload=Workload(reply=0.4, depth=2),
    )
    path = tmp_path_factory.mktemp("why") / "trace.jsonl"
    simulate(config).write(path)
    return path


def hold(process: str, index: int, message: str, *awaits: WaitsFor, **note: object) -> Event:
    words = encode_note(HoldNote(2, awaits, **note))
    sender, group, _ = message.split("/")
    return Event(process, index, "hold", message, group, sender=sender, time=index, note=words)


def test_the_longest_waits_come_first(trace) -> None:
    waits = json.loads(why(trace, "--json", "--top", 1000).stdout)
    assert len(waits) > 5
    lengths = [wait["held_ns"] for wait in waits]
    assert lengths == sorted(lengths, reverse=True)
    assert not any(wait["still_held"] for wait in waits)


def test_top_says_how_many_there_are(trace) -> None:
    total = len(json.loads(why(trace, "--json", "--top", 1000).stdout))
    result = why(trace, "--top", 2)
    assert result.exit_code == 0
    assert f"the 2 longest of {total} held back" in result.stdout


def test_the_story_of_a_message_says_when_it_came_and_what_released_it(trace) -> None:
    [first, *_] = json.loads(why(trace, "--json").stdout)
    result = why(trace, "--message", first["message"], "--process", first["process"])
    assert f"{first['process']} held message {first['message']} back, for" in result.stdout
    assert "waits for packet" in result.stdout
    assert f"{first['by']} ended its wait for packet" in result.stdout
    assert result.stdout.rstrip().endswith("delivered to the application")


def test_a_process_shows_only_what_waited_there(trace) -> None:
    waits = json.loads(why(trace, "--process", "p1#1", "--json", "--top", 1000).stdout)
    assert {wait["process"] for wait in waits} == {"p1#1"}


def test_what_is_still_held_comes_first_with_the_silent_member_and_the_block(tmp_path) -> None:
    silent = WaitsFor("block", "g", "carol#1", 7)
    gone = WaitsFor("frame", "g", "bob#1", 1)
    write_jsonl(
        [
            hold("alice#1", 1, "bob#1/g/2", gone),
            hold("alice#1", 900, "bob#1/g/2", gone=(gone,), by="Slow from bob#1", delivered=True),
            hold("alice#1", 950, "bob#1/g/3", silent),
            Event("alice#1", 960, "end", time=960),
        ],
        tmp_path / "trace.jsonl",
    )
    result = why(tmp_path / "trace.jsonl")
    stories = [line for line in result.stdout.splitlines() if line.startswith("alice#1")]
    assert stories[0].startswith("alice#1 holds message bob#1/g/3 back")
    assert "the run ended before what it waits for came" in stories[0]
    assert "waits for carol#1 to speak in g up to block 7" in result.stdout
    assert "STILL HELD" in result.stdout


def test_a_crash_that_leaves_a_gap_shows_who_is_waited_for(tmp_path) -> None:
    config = SimulationConfig(
        protocol="sequencer_pb",
        members=3,
        messages=8,
        delay=Constant(1000),
        faults=(Crash(0, at_ms=3.5, lose=0.5),),
        quiet_ms=2000,
        trace="protocol",
    )
    simulate(config).write(tmp_path / "trace.jsonl")
    waits = json.loads(why(tmp_path / "trace.jsonl", "--json").stdout)
    assert waits[0]["still_held"]
    assert waits[0]["stages"][-1]["awaits"][0]["process"] == "p0#1"


def test_a_trace_without_protocol_rows_says_how_to_record_them(tmp_path) -> None:
    simulate(SimulationConfig(protocol="fifo", members=3, messages=3)).write(tmp_path / "t.csv")
    result = why(tmp_path / "t.csv")
    assert result.exit_code == BAD_INPUT
    for words in ("trace_level='protocol'", "ordercast simulate --trace protocol"):
        assert words in " ".join(result.stderr.split())


def test_a_run_in_which_nothing_waits_says_so(tmp_path) -> None:
    config = SimulationConfig(protocol="basic", members=3, messages=3, trace="protocol")
    simulate(config).write(tmp_path / "trace.jsonl")
    result = why(tmp_path / "trace.jsonl")
    assert (result.exit_code, result.stdout.strip()) == (0, "nothing was held back anywhere")


def test_a_message_that_never_waited_says_where_it_was_delivered(tmp_path) -> None:
    config = SimulationConfig(protocol="fifo", members=3, messages=1, trace="protocol")
    outcome = simulate(config)
    outcome.write(tmp_path / "trace.jsonl")
    [message] = {event.message for event in outcome.events() if event.kind == "send"}
    result = why(tmp_path / "trace.jsonl", "--message", message)
    assert f"{message} was not held back anywhere" in result.stdout
    assert result.stdout.count("delivered it as soon as it came") == 3


@pytest.mark.parametrize(
    ("option", "wrong", "nearest"),
    [("--message", "p1/g1/2", "p1#1/g1/2"), ("--process", "p2", "p2#1")],
)
def test_a_wrong_name_is_answered_with_the_nearest(trace, option, wrong, nearest) -> None:
    result = why(trace, option, wrong)
    assert result.exit_code == BAD_INPUT
    assert f"'{wrong}'; the nearest is '{nearest}'" in " ".join(result.stderr.split())


def test_a_trace_that_does_not_exist_is_bad_input(tmp_path) -> None:
    assert why(tmp_path / "nothing.jsonl").exit_code == BAD_INPUT


def test_simulate_records_at_protocol_level_when_asked(tmp_path) -> None:
    out = tmp_path / "trace.jsonl"
    arguments = ["simulate", "--protocol", "vector", "--loss", "0.1", "--trace", "protocol"]
    assert CliRunner().invoke(app, [*arguments, "--out", str(out)]).exit_code == 0
    assert json.loads(why(out, "--json", "--top", 1).stdout)
    arguments[-1] = "everything"
    result = CliRunner().invoke(app, [*arguments, "--out", str(out)])
    assert result.exit_code == BAD_INPUT
    assert "'application' or 'protocol'" in " ".join(result.stderr.split())


async def test_status_shows_for_each_group_how_long_its_oldest_message_waits() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        await node.join("prices", order="total")
        asking = await asyncio.create_subprocess_exec(
            ORDERCAST, "status", node.address, stdout=subprocess.PIPE
        )
        shown = (await asking.communicate())[0].decode()
    group = shown[shown.index("group prices") :]
    assert "oldest_held_seconds" in group and "frames_held" in group
