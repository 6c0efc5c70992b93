"""Commands that need no Spark: what they print, and how they refuse."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ordercast
from ordercast import Node
from ordercast.cli.app import app
from ordercast.cli.exits import console
from ordercast.protocols.registry import PROTOCOLS

ORDERCAST = str(Path(sys.executable).parent / "ordercast")


def invoke(*words: str):
    return CliRunner().invoke(app, list(words))


def test_version_prints_the_version():
    assert invoke("--version").stdout == f"ordercast {ordercast.__version__}\n"


def test_help_names_every_command():
    shown = invoke("--help").stdout
    for command in ("demo", "chat", "simulate", "verify", "protocols", "status"):
        assert command in shown


def test_protocols_lists_all_of_them_with_order_scope_cost_and_needs():
    listed = json.loads(invoke("protocols", "--json").stdout)
    assert [one["name"] for one in listed] == list(PROTOCOLS)
    for one in listed:
        assert one["order"] and one["scope"] and one["network"] and one["packets"]
        assert one["control"]
    assert all(name in invoke("protocols").stdout for name in PROTOCOLS)


def test_protocols_fits_80_columns_and_explains_every_sign_in_it(monkeypatch):
    monkeypatch.setattr(console, "width", 80)
    table, signs = invoke("protocols").stdout.split("\n*  ")
    assert "…" not in table
    rows = {line.split()[0]: line.split() for line in table.splitlines() if line.split()}
    for name, protocol in PROTOCOLS.items():
        d = protocol.declaration
        assert rows[name][1].rstrip("*") in d.orders
        assert rows[name][-2] == ("no" if d.closed else "yes")
        assert rows[name][-1] in d.source
        assert re.search(rf"^  {d.network} +\w", signs, re.MULTILINE)
        for number in re.findall(r"\b00\d\b", d.source):
            assert f"\n  {number}  " in signs


def test_protocols_prints_the_table_of_the_docs():
    guarantees = (Path(__file__).parents[2] / "docs" / "GUARANTEES.md").read_text()
    assert invoke("protocols", "--markdown").stdout.strip() in guarantees


def test_the_same_seed_writes_the_same_file(tmp_path):
    for name in ("a", "b"):
        done = invoke(
            "simulate", "--protocol", "vector", "--members", "4", "--messages", "20", "--loss",
            "0.1", "--seed", "3", "--out", str(tmp_path / f"{name}.jsonl"), "--json",
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["ended"] == "quiescent"
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_a_trace_declares_the_strongest_order_and_all_are_to_be_judged(tmp_path):
    out = tmp_path / "t.jsonl"
    done = invoke("simulate", "--protocol", "block_total", "--messages", "5", "--out", str(out))
    assert json.loads(out.read_text().splitlines()[0])["order"] == "global-total"
    assert "--expect global-total --expect causal-total --expect total" in done.stdout
    done = invoke("simulate", "--protocol", "vector", "--messages", "5", "--out", str(out))
    assert "--expect" not in done.stdout


def test_a_simulated_crash_is_in_the_trace(tmp_path):
    out = tmp_path / "crash.jsonl"
    done = invoke("simulate", "--protocol", "fifo", "--crash", "2", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert '"kind":"crash"' in out.read_text().replace(" ", "")


@pytest.mark.parametrize("protocol", ["cbcast", "sequencer_pb"])
def test_a_crash_is_simulated_in_overlapping_groups(protocol, tmp_path):
    out = tmp_path / "crash.jsonl"
    done = invoke(
        "simulate", "--protocol", protocol, "--groups", "2", "--members", "6", "--crash", "4",
        "--out", str(out), "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["ended"] == "quiescent"
    views = [row for row in map(json.loads, out.read_text().splitlines()) if row["kind"] == "view"]
    assert {row["group"] for row in views if row["view"] > 1} == {"g1", "g2"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--protocol", "telepathy"], "built are basic, reliable"),
        (["--protocol", "fifo", "--members", "0"], "error: members=0 must be at least 1"),
        (["--protocol", "fifo", "--loss", "1.5"], "1.5"),
        (["--protocol", "fifo", "--crash", "9"], "error: Crash at 51 ms names process 9, but"),
        (["--protocol", "fifo", "--crash", "9"], "processes are 0 to 4"),
        (["--protocol", "fifo", "--groups", "6"], "at most one group for each process"),
        (["--protocol", "fifo", "--groups", "0"], "groups=0"),
    ],
)
def test_simulate_refuses_what_cannot_be_and_says_what_could(words, said, tmp_path):
    done = invoke("simulate", *words, "--out", str(tmp_path / "x.jsonl"))
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "x.jsonl").exists()


def test_simulate_refuses_a_file_of_an_unknown_kind(tmp_path):
    done = invoke("simulate", "--protocol", "fifo", "--out", str(tmp_path / "x.xml"))
    assert done.exit_code == 2
    assert "FILE.jsonl" in done.stderr


def test_status_of_nobody_says_so():
    done = invoke("status", "127.0.0.1:1", "--timeout", "1")
    assert done.exit_code == 4
    assert done.stderr.startswith("error:")


def test_status_of_no_address_is_bad_input():
    done = invoke("status", "nonsense")
    assert done.exit_code == 2
    assert "nonsense" in done.stderr


async def test_status_shows_the_groups_of_a_running_node():
    async with Node("alice", bootstrap=True) as node:
        await node.join("prices", order="total")
        process = await asyncio.create_subprocess_exec(
            ORDERCAST, "status", node.address, "--json", stdout=subprocess.PIPE
        )
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["name"] == "alice"
    assert "prices" in out.decode()


async def test_two_terminals_chat():
    async def chat(*words: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            ORDERCAST, "chat", *words, stdin=pipe, stdout=pipe, stderr=pipe
        )

    async def until(process: asyncio.subprocess.Process, pattern: str) -> re.Match[str]:
        seen = ""
        async with asyncio.timeout(30):
            while True:
                line = (await process.stdout.readline()).decode()
                assert line, seen + (await process.stderr.read()).decode()
                seen += line
                if found := re.search(pattern, line):
                    return found

    alice = await chat("--name", "alice")
    line = (await until(alice, r"ordercast chat (--join .*)")).group(1)
    bob = await chat(*line.split())  # the line as it was printed
    await until(alice, "here: alice, bob")
    alice.stdin.write(b"hello [bob]\n")
    assert await until(bob, r"alice: hello \[bob\]")
    bob.stdin.write(b"hi alice\n")
    assert await until(alice, "bob: hi alice")
    bob.stdin.write_eof()
    await until(alice, "bob left")
    alice.stdin.write_eof()
    assert [await bob.wait(), await alice.wait()] == [0, 0]


def test_the_help_of_chat_lists_every_order_there_is():
    shown = " ".join(invoke("chat", "--help").stdout.replace("│", " ").split())
    assert "none, fifo, causal, total, hybrid, causal-total, global-total" in shown


def test_chat_with_nobody_there_lists_the_address_and_the_reason():
    done = subprocess.run(
        [ORDERCAST, "chat", "--join", "127.0.0.1:1", "--name", "bob"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert done.returncode == 4
    assert "127.0.0.1:1" in done.stderr and "bootstrap" in done.stderr
