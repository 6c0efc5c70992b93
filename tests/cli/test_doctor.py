"""`ordercast doctor`: what it prints, its JSON, its exit codes, and how it refuses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from certificates import authority, signed
from listeners import closed_port, fake_node, speaker
from ordercast import Node
from ordercast.cli.app import app
from ordercast.cli.doctor import exit_code
from ordercast.cli.exits import console
from ordercast.runtime.diagnosis.catalogue import CATALOGUE
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.transport.security import Security


def invoke(*words: str, **environment: str):
    return CliRunner().invoke(app, ["doctor", *words], env=environment)


async def invoked(*words: str, **environment: str):
    """In a thread: what it examines lives in this event loop."""
    return await asyncio.to_thread(invoke, *words, **environment)


async def test_a_healthy_cluster_is_told_with_the_checks_that_passed() -> None:
    async with Node("alice", bootstrap=True) as alice:
        done = await invoked(alice.address, "--name", "bob", "--bind", "127.0.0.1:0")
    assert done.exit_code == 0, done.output
    assert "Checks that passed" in done.stdout
    assert done.stdout.rstrip().endswith("healthy: 1 node answered")


async def test_findings_come_worst_first_with_what_was_seen_and_what_to_do(monkeypatch) -> None:
    monkeypatch.setattr(console, "width", 80)
    nobody = closed_port()
    async with Node("alice", bootstrap=True) as alice:
        await alice.join("prices", order="total")
        wanted = ("--group", "prices", "--order", "fifo", "--name", "alice")
        done = await invoked(nobody, alice.address, *wanted)
    assert done.exit_code == 1
    blocks = done.stdout.split("\n\n")
    assert blocks[0].splitlines() == [
        f"1. fault at {alice.address} (name_taken)",
        f"   seen:  alice#1 is in the cluster, at {alice.address}; it answers",
        f"   to do: {CATALOGUE['name_taken'][1]}",
    ]
    assert blocks[1].startswith(f"2. fault at {alice.address} (order_mismatch)")
    assert blocks[2].startswith(f"3. warning at {nobody} (refused)")
    assert done.stdout.rstrip().endswith("2 faults, 1 warning; 1 node answered")


async def test_json_is_the_same_as_data() -> None:
    async with Node("alice", bootstrap=True, cluster="prod") as alice:
        done = await invoked(alice.address, "--cluster", "test", "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == 4
    assert (told["healthy"], told["answered"]) == (False, 0)
    [finding] = told["findings"]
    assert finding == {
        "level": "fault",
        "code": "cluster",
        "where": alice.address,
        "seen": "it refuses: this is cluster 'prod', not 'test'",
        "cure": CATALOGUE["cluster"][1],
    }
    assert {"check", "why"} == set(told["skipped"][0])


async def test_what_strangers_say_is_neither_markup_nor_a_command_to_the_terminal() -> None:
    async with fake_node(state="[bold]\x1b[2J") as alice:
        done = await invoked(alice.address)
    assert "\x1b[2J" not in done.stdout
    assert r"[bold]\x1b[2J" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["nonsense"], 2),
        (["nonsense", "127.0.0.1:1"], 4),
        (["127.0.0.1:1"], 4),
        (["127.0.0.1:1", "--bind", "127.0.0.1:0", "--name", "bob"], 4),
    ],
)
def test_the_exit_code_says_whether_the_input_or_the_way_was_at_fault(words, code) -> None:
    assert invoke(*words).exit_code == code


def test_notes_alone_are_healthy_and_warnings_are_not() -> None:
    diagnosis = Diagnosis()
    diagnosis.answered = 1
    diagnosis.find("group_is_new", "somewhere", "something")
    assert exit_code(diagnosis) == 0
    diagnosis.find("stalls", "somewhere", "something")
    assert exit_code(diagnosis) == 1


async def test_the_key_comes_from_a_file_or_from_the_environment(tmp_path: Path) -> None:
    key = "0123456789abcdef" * 2
    (tmp_path / "key").write_text(f"{key}\n")
    async with fake_node(security=Security.given(key, None)) as alice:
        without = await invoked(alice.address, "--json")
        from_file = await invoked(alice.address, "--key-file", str(tmp_path / "key"))
        from_environment = await invoked(alice.address, ORDERCAST_KEY=key)
    assert json.loads(without.stdout)["findings"][0]["code"] == "key"
    assert (from_file.exit_code, from_environment.exit_code) == (0, 0)


async def test_certificates_are_given_as_three_files() -> None:
    mine = signed("carol")
    async with fake_node(security=Security.given(None, signed("alice"))) as alice:
        done = await invoked(
            alice.address, "--tls-cert", str(mine.certificate), "--tls-key", str(mine.key),
            "--tls-ca", str(mine.authority),
        )  # fmt: skip
    assert done.exit_code == 0, done.output


def test_a_certificate_of_ones_own_that_has_expired_is_a_finding() -> None:
    old = signed("old", days=-1)
    done = invoke(
        "127.0.0.1:1", "--tls-cert", str(old.certificate), "--tls-key", str(old.key),
        "--tls-ca", str(authority("ours").pem), "--json",
    )  # fmt: skip
    [finding] = json.loads(done.stdout)["findings"]
    assert done.exit_code == 1
    assert finding["code"] == "own_certificate" and "has expired" in finding["seen"]


async def test_the_options_of_the_node_are_compared() -> None:
    async with Node("alice", bootstrap=True) as alice:
        done = await invoked(
            alice.address, "--option", "max_message=2000000", "--option", "codec=json",
            "--heartbeat-ms", "100", "--suspect-ms", "3000", "--json",
        )  # fmt: skip
    found = [(one["level"], one["code"]) for one in json.loads(done.stdout)["findings"]]
    assert found == [
        ("fault", "options_differ"),
        ("fault", "options_differ"),
        ("warning", "heartbeats_differ"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give the address of a node, or where to discover one"),
        (["127.0.0.1:1", "--bind", "here"], "bind='here' is not an address"),
        (["127.0.0.1:1", "--name", ""], "node"),
        (["127.0.0.1:1", "--group", "g", "--order", "best"], "best"),
        (["127.0.0.1:1", "--order", "total"], "name the group"),
        (["127.0.0.1:1", "--heartbeat-ms", "5000"], "suspect_ms must be at least 10000"),
        (["127.0.0.1:1", "--option", "max_message"], "write NAME=VALUE"),
        (["127.0.0.1:1", "--option", "max_massage=1"], "no option 'max_massage'"),
        (["127.0.0.1:1", "--option", "max_message=many"], "max_message is a number, not 'many'"),
        (["127.0.0.1:1", "--option", "voters=a,"], "a node name"),
        (["127.0.0.1:1", "--option", "codec=pickle"], "codec='pickle' is unknown"),
        (["127.0.0.1:1", "--tls-cert", "x.pem"], "TLS needs all three"),
        (["127.0.0.1:1", "--key-file", "/nowhere/key"], "No such file"),
        (["127.0.0.1:1", "--discover", "10.0.0.1:7"], "10.0.0.1"),
        (["127.0.0.1:1", "--timeout", "0"], "timeout=0.0 must be positive"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_probed(words, said) -> None:
    done = invoke(*words)
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert not done.stdout


def test_a_key_that_is_too_short_is_refused() -> None:
    done = invoke("127.0.0.1:1", ORDERCAST_KEY="short")
    assert done.exit_code == 2
    assert "the key has 5 bytes" in done.stderr


async def test_a_web_server_is_named() -> None:
    async with speaker(b"HTTP/1.0 200 OK\r\n\r\nhello") as address:
        done = await invoked(address, "--timeout", "1")
    assert done.exit_code == 4
    assert "an HTTP server answers there, not a node" in done.stdout
