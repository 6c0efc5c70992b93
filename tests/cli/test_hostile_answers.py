"""Commands that ask a node that means ill: they say what is wrong with its answer, in a line."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from click.testing import Result
from typer.testing import CliRunner

from fuzz.contact import HostileContact
from ordercast.cli.app import app
from ordercast.cli.exits import BAD_INPUT, UNREACHABLE, VIOLATED
from ordercast.errors import PeerError
from ordercast.runtime.control import (
    Control,
    Dialback,
    DialbackReply,
    StatusReply,
    StatusRequest,
    TableReply,
    TableRequest,
    encode,
)
from ordercast.runtime.diagnosis.diagnose import diagnose
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.status_decoding import MAX_DEPTH, decode_status, parts_of_status
from ordercast.wire.control import Hello

COMMANDS = "\x1b]0;PWNED\x07\x1b[2J[red]"
DEEP = b"[" * 100_000 + b"]" * 100_000

UNREADABLE: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"\xff\xfe",
    "no text": b'{"state":"\xff"}',
    "a list": b"[]",
    "a number": b"7",
    "an empty dict": b"{}",
    "deep": b'{"state":' + DEEP + b"}",
    "deep in what nobody knows": b'{"state":"running","new":' + DEEP + b"}",
    "too deep to show": b'{"state":"x","new":'
    + b"[" * (MAX_DEPTH + 1)
    + b"]" * (MAX_DEPTH + 1)
    + b"}",
    "a number without end": b'{"state":"x","new":' + b"9" * 4000 + b"}",
    "a state that is none": b'{"state":["running"]}',
    "nodes that are none": b'{"state":"running","nodes":[1]}',
    "nodes without names": b'{"state":"running","nodes":[{"pid":1}]}',
    "figures that are none": b'{"state":"running","stats":[]}',
    "groups that are none": b'{"state":"running","stats":{"groups":[1]}}',
    "an incarnation that is none": b'{"state":"running","incarnation":"x"}',
    "huge": b'{"state":"' + b"x" * (1 << 20) + b'"',
}

SHOWN: dict[str, dict[str, Any]] = {
    "commands": {
        "state": COMMANDS, "name": COMMANDS, COMMANDS: COMMANDS,
        "nodes": [{"name": COMMANDS, "address": COMMANDS, COMMANDS: 1}],
        "stats": {"groups": {COMMANDS: {COMMANDS: [COMMANDS]}}},
    },
    "strange figures": {
        "state": "running", "lists": [{"a": 1}, 7, {"b": [{}]}, []], "figures": {"groups": [1]},
        "more": {"groups": {"g": 1, "h": {"groups": 5}}}, "nothing": {}, "null": None,
    },
}  # fmt: skip


def liar(status: bytes, table: bytes = b"[]", *, more: bool = False) -> HostileContact:
    def answer(_: HostileContact, question: Control, hello: Hello) -> Control | bytes | None:
        if isinstance(question, StatusRequest):
            return encode(StatusReply(), status)
        if isinstance(question, TableRequest):
            return encode(TableReply(more), table)
        return DialbackReply("?", COMMANDS) if isinstance(question, Dialback) else None

    return HostileContact(answer)


async def run(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, list(words))


def told_in_words(result: Result, address: str, exit_codes: tuple[int, ...]) -> None:
    assert result.exit_code in exit_codes, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert address in result.output and "Traceback" not in result.output
    assert "\x1b]" not in result.output and "\x1b[2J" not in result.output


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_status_that_cannot_be_read_is_the_fault_of_that_address(what: str) -> None:
    with pytest.raises(PeerError, match=r"^the status of 10\.0\.0\.1:7 is not readable: "):
        decode_status("10.0.0.1:7", UNREADABLE[what])


def test_what_a_later_release_adds_stays_in_a_status() -> None:
    told = {"state": "running", "new": {"a": [1, None, "x"], "b": 2**64}}
    assert decode_status("h:1", msgspec.json.encode(told)) == told
    with pytest.raises(PeerError, match="h:1"):
        parts_of_status("h:1", told, int)


@pytest.mark.parametrize("what", UNREADABLE)
async def test_every_command_that_reads_a_status_says_whose_cannot_be_read(what: str) -> None:
    async with liar(UNREADABLE[what]) as evil:
        told_in_words(await run("status", evil.address), evil.address, (UNREACHABLE,))
        told_in_words(await run("recover", "--node", evil.address), evil.address, (UNREACHABLE,))
        doctor = await run("doctor", evil.address, "--bind", "127.0.0.1:0")
        told_in_words(doctor, evil.address, (VIOLATED, UNREACHABLE))


@pytest.mark.parametrize("what", SHOWN)
async def test_a_status_that_is_strange_is_shown_and_moves_no_terminal(what: str) -> None:
    async with liar(msgspec.json.encode(SHOWN[what])) as evil:
        shown = await run("status", evil.address)
        assert shown.exit_code == 0, shown.output
        assert "\x1b]" not in shown.output and "\x1b[2J" not in shown.output
        doctor = await run("doctor", evil.address, "--bind", "127.0.0.1:0")
        told_in_words(doctor, evil.address, (VIOLATED, UNREACHABLE))
        told_in_words(await run("recover", "--node", evil.address), "", (UNREACHABLE, BAD_INPUT))


async def test_what_a_diagnosis_says_of_a_strange_node_can_be_printed_by_any_program() -> None:
    async with liar(msgspec.json.encode(SHOWN["commands"])) as evil:
        diagnosis = Diagnosis()
        await diagnose([evil.address], Subject(name="bob", bind="127.0.0.1:0"), diagnosis)
    found = [*diagnosis.findings, *diagnosis.passed, *diagnosis.skipped]
    texts = [text for one in found for text in msgspec.structs.astuple(one)]
    assert all(text.isprintable() for text in texts)
    assert any("PWNED" in text for text in texts)


SURVEYED: dict[str, dict[str, Any]] = {
    "no node view": {},
    "a node view that is none": {"node_view": 7},
    "members that are none": {"node_view": {"number": 1, "members": 5, "voters": []}},
    "silence that is none": {
        "node_view": {"number": 1, "members": [], "voters": []}, "silent_ms": {"x": "y"},
    },
    "groups without a view": {
        "node_view": {"number": 1, "members": [], "voters": []}, "groups": {"g": {}},
    },
    "a crowd": {"node_view": {"number": 1, "members": ["x#1"] * 5000, "voters": []}},
}  # fmt: skip


@pytest.mark.parametrize("what", SURVEYED)
async def test_who_is_missing_is_not_taken_from_figures_that_are_none(what: str) -> None:
    status = {"state": "running", "name": "evil", "incarnation": 1, "stats": SURVEYED[what]}
    async with liar(msgspec.json.encode(status)) as evil:
        told_in_words(await run("recover", "--node", evil.address), evil.address, (UNREACHABLE,))


@pytest.mark.parametrize(
    ("table", "more"),
    [(b"[]", True), (b"{}", False), (DEEP, False), (b'[{"name":5}]', False), (b"\xff", False)],
    ids=["no end", "no rows", "deep", "a name that is none", "no text"],
)
async def test_a_table_that_cannot_be_read_is_the_fault_of_that_address(
    table: bytes, more: bool
) -> None:
    async with liar(b"", table, more=more) as evil:
        for command in ("groups", "sequencers"):
            told = await run(command, "--node", evil.address)
            told_in_words(told, evil.address, (UNREACHABLE,))
