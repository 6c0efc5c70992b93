"""`ordercast groups`, `sequencers`, `migrate`, `drain`: what they print, and how they end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner

import ordercast as oc
from ordercast.cli.app import app
from ordercast.cli.exits import console


async def invoke(*words: str) -> Any:
    """In another thread: the command has an event loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, app, list(words))


async def test_groups_are_a_table_for_people_and_json_for_programs(monkeypatch) -> None:
    monkeypatch.setattr(console, "width", 100)
    async with oc.Node("alice", bootstrap=True) as node:
        await node.join("pri[ces]", order="total", protocol="sequencer_pb")
        shown = await invoke("groups", "--node", node.address)
        told = await invoke("groups", "--seed", node.address, "--json")
    assert shown.exit_code == told.exit_code == 0
    for text in ("pri[ces]", "sequencer_pb", "alice", "sequencer", "guests"):
        assert text in shown.stdout
    [row] = json.loads(told.stdout)
    assert row == {
        "name": "pri[ces]", "order": "total", "protocol": "sequencer_pb",
        "members": ["alice"], "guests": [], "sequencer": "alice",
    }  # fmt: skip


async def test_a_cluster_without_groups_says_so() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        assert (await invoke("groups", "--node", node.address)).stdout == "no groups\n"


async def test_sequencers_tells_who_is_dedicated(monkeypatch) -> None:
    monkeypatch.setattr(console, "width", 100)
    async with oc.Node("s1", bootstrap=True, sequencer=True) as node:
        shown = await invoke("sequencers", "--node", node.address)
        told = await invoke("sequencers", "--node", node.address, "--json")
    assert "s1" in shown.stdout and "yes" in shown.stdout
    assert json.loads(told.stdout)[0]["dedicated"] is True


async def test_a_wish_that_cannot_be_is_bad_input_and_says_what_could() -> None:
    async with oc.Node("s1", bootstrap=True) as node:
        await node.join("prices", order="total", protocol="sequencer_pb")
        moved = await invoke("migrate", "pries", "--to", "s1", "--node", node.address)
        drained = await invoke("drain", "s2", "--node", node.address)
    assert (moved.exit_code, drained.exit_code) == (2, 2)
    assert "error: no group 'pries': there is 'prices'" in moved.stderr
    assert "error: no sequencer 's2': there is 's1'" in drained.stderr


async def test_what_is_so_already_is_done() -> None:
    async with oc.Node("s1", bootstrap=True) as node:
        await node.join("prices", order="total", protocol="sequencer_pb")
        done = await invoke("migrate", "prices", "--to", "s1", "--node", node.address)
        told = await invoke("migrate", "prices", "--to", "s1", "--node", node.address, "--json")
    assert done.stdout == "s1 numbers the messages of group prices\n"
    assert json.loads(told.stdout) == {"group": "prices", "to": "s1"}


async def test_what_is_not_done_in_time_ends_with_1(monkeypatch) -> None:
    async with oc.Node("s1", bootstrap=True) as node:

        async def drain(name: str) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(node._presence.administration.placement, "drain", drain)
        done = await invoke("drain", "s1", "--node", node.address, "--timeout", "0.2")
    assert done.exit_code == 1
    assert "error: 's1' still has groups after 0.2 s" in done.stderr


@pytest.mark.parametrize("command", [["groups"], ["sequencers"], ["drain", "s1"]])
async def test_nobody_there_ends_with_4(command: list[str]) -> None:
    done = await invoke(*command, "--node", "127.0.0.1:1")
    assert done.exit_code == 4
    assert "127.0.0.1:1: connection refused" in done.stderr


async def test_another_machine_in_plain_text_is_refused_with_the_ways_out() -> None:
    done = await invoke("groups", "--node", "192.0.2.1:7700")
    assert done.exit_code == 2
    assert "nothing would be encrypted" in done.stderr
