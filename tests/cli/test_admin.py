"""The commands that administer a cluster: what they print, and how they end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner

import ordercast as oc
from ordercast.cli.app import app
from ordercast.cli.exits import console, progress


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
        "members": ["alice"], "guests": [], "sequencer": "alice", "waits_for": [],
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


def kill(node: oc.Node) -> None:
    node._presence.fail(oc.GroupClosed("killed"))


async def cut_off(first: oc.Node, second: oc.Node) -> int:
    """The second of two nodes alone: the number of its node view."""
    kill(first)
    async with asyncio.timeout(60):
        while not second.stats()["blocked"]:
            await asyncio.sleep(0.01)
    return second.stats()["node_view"]["number"]


async def test_recover_shows_what_is_missing_and_wants_the_view_number(monkeypatch) -> None:
    monkeypatch.setattr(progress, "width", 120)
    async with (
        oc.Node("s1", bootstrap=True, suspect_ms=500, rejoin=False) as first,
        oc.Node("s2", seeds=[first.address], suspect_ms=500) as second,
    ):
        group = await second.join("prices", order="total")
        view = await cut_off(first, second)
        where = ("--node", second.address)
        refused = await invoke("recover", *where, "--yes", "77")
        assert second.stats()["blocked"]
        typed = await asyncio.to_thread(
            CliRunner().invoke, app, ["recover", *where], input=f"{view}\n"
        )
        again = await invoke("recover", *where, "--yes", str(view + 1))
        await (await group.multicast(b"on")).ordered()
        status = json.loads((await invoke("status", second.address, "--json")).stdout)
    assert refused.exit_code == 2 and f"the node view is {view}, not 77" in refused.stderr
    for text in ("s1#1", "silent for", "s2#1", "prices at view", "has no majority", "are lost"):
        assert text in typed.stderr
    assert typed.exit_code == 0
    assert typed.stdout.endswith(f"node view {view + 1} is in force, with s2#1\n")
    assert again.exit_code == 2 and "is missing: there is nothing to do" in again.stderr
    assert status["stats"]["recoveries"][0]["forgotten"] == ["s1#1"]


async def test_forget_names_nodes_and_tells_programs_in_json() -> None:
    async with (
        oc.Node("s1", bootstrap=True, suspect_ms=500, rejoin=False) as first,
        oc.Node("s2", seeds=[first.address], suspect_ms=500) as second,
    ):
        view = await cut_off(first, second)
        options = ("--node", second.address, "--yes", str(view), "--json")
        wrong = await invoke("forget", "s3", *options)
        done = await invoke("forget", "s1#1", *options)
    assert wrong.exit_code == 2 and "no node 's3' is missing; missing: s1#1" in wrong.stderr
    told = json.loads(done.stdout)
    assert (told["view"], told["missing"], told["has_majority"]) == (view + 1, [], True)


async def test_a_cluster_with_a_key_lets_nobody_without_it_recover() -> None:
    key = "a key that is long enough for everybody"
    async with oc.Node("s1", bootstrap=True, key=key) as node:
        done = await invoke("recover", "--node", node.address, "--yes", "1", "--timeout", "5")
    assert done.exit_code == 4


async def test_undrain_and_refound_say_what_is_so() -> None:
    async with oc.Node("s1", bootstrap=True) as node:
        await node.join("prices", order="total")
        undrained = await invoke("undrain", "s1", "--node", node.address)
        refounded = await invoke("groups", "refound", "prices", "--node", node.address)
    assert undrained.stdout == "s1 may have groups again\n"
    assert refounded.exit_code == 2
    assert "group 'prices' has members: it waits for nobody" in refounded.stderr
