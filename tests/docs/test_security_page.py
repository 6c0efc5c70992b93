"""The lines of docs/SECURITY.md make what a node needs, and its numbers are those of the code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import ordercast as oc
from ordercast.core.protocol import Options
from ordercast.machinery.unconfirmed import MAX_APART, MAX_APART_BYTES
from ordercast.protocols.sequencing.sequencer import FETCH_BYTES
from ordercast.runtime.coordination import CALL_S, COMING_S
from ordercast.runtime.options import NodeOptions
from ordercast.service import http
from ordercast.service.metrics import METRICS
from ordercast.transport.contract import KiB, Limits, MiB
from ordercast.transport.security import MAX_KEY_BYTES, MIN_KEY_BYTES
from ordercast.transport.settings import Udp
from ordercast.views.ahead import MAX_AHEAD, MAX_AHEAD_BYTES
from ordercast.views.flush import PIECE, PIECE_BYTES
from ordercast.wire.opening import MAX_OPENING

PAGE = (Path(__file__).parents[2] / "docs" / "SECURITY.md").read_text(encoding="utf-8")


def test_the_five_lines_make_a_node_that_the_example_can_start(tmp_path, monkeypatch):
    [lines] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(lines.strip().splitlines()) == 5
    subprocess.run(["sh", "-e", "-c", lines], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/SECURITY.md", "exec"), {})


def row(name: str) -> list[str]:
    """The cells of the table of limits after the name."""
    [line] = [line for line in PAGE.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def test_the_page_states_the_limits_that_hold():
    limits, options, udp = Limits(), NodeOptions(), Udp()
    assert f"is {MIN_KEY_BYTES} to {MAX_KEY_BYTES:,} bytes" in PAGE
    assert row("opening")[0] == f"{MAX_OPENING:,}"
    assert row("time for the TLS handshake, and then again for the opening")[0] == (
        f"{limits.hello_timeout_s:g} s"
    )
    assert row("`max_unknown`")[0] == str(limits.max_unknown)
    assert row("`max_unknown_per_host`")[0] == str(limits.max_unknown_per_host)
    assert row("`unknown_stay_s`")[0] == f"{limits.unknown_stay_s:g} s"
    assert row("`max_strangers`")[0].startswith(f"{options.max_nodes:,} ")
    assert row("`max_stranger_frame`")[0] == f"{limits.max_stranger_frame // KiB} KiB"
    assert row("`max_stranger_bytes`")[0] == f"{limits.max_stranger_bytes // MiB} MiB"
    assert row("`join_timeout`")[0] == f"{options.join_timeout:g} s"
    come_in = row("time to come in, once let in")
    assert come_in[0] == f"{COMING_S:g} s" and f"within {CALL_S:g} s" in come_in[2]
    assert row("largest frame")[0].startswith(f"{options.for_connections().max_frame // MiB} MiB")
    assert row("`max_held`")[0] == f"{options.max_held:,}"
    assert row("`max_held_bytes`")[0] == f"{options.max_held_bytes // MiB} MiB"
    for name in ("`max_held_bytes`, once more", "`max_held_bytes`, of a member"):
        assert row(name)[0] == f"{Options().max_held_bytes // MiB} MiB"
    assert row("answer to a FETCH")[0] == f"{FETCH_BYTES // MiB} MiB"
    ahead, piece = MAX_AHEAD_BYTES // MiB, PIECE_BYTES // MiB
    assert row("packets of a term that has not begun here")[0] == f"{ahead} MiB, {MAX_AHEAD:,}"
    assert row("a piece of what a view change fetches")[0] == f"{piece} MiB, {PIECE}"
    assert row("relayed bodies")[0] == f"{MAX_APART:,} frames, {MAX_APART_BYTES // MiB} MiB"
    assert row("`max_buffered`")[0] == f"{options.for_connections().max_buffered // MiB} MiB"
    assert row("`max_state`")[0] == f"{options.max_state // MiB} MiB"
    assert row("`reassembly_bytes`")[0] == f"{udp.reassembly_bytes // MiB} MiB"
    assert row("`queue_bytes`")[0] == f"{udp.queue_bytes // MiB} MiB"
    assert row("connections")[0] == f"{http.MAX_CONNECTIONS}, of one host {http.MAX_PER_HOST}"
    assert f"within {http.STAY_SECONDS:g} s" in row("connections")[2]
    assert row("request")[0] == f"{http.MAX_HEAD_BYTES // KiB} KiB, {http.REQUEST_SECONDS:g} s"


async def test_where_a_limit_is_said_to_be_seen_it_is():
    async with oc.Node("alice", bootstrap=True, transport="udp") as node:
        await node.join("g", order="total")
        stats = node.stats()
        known = {*stats, *stats["connections"], *stats["datagrams"], *stats["groups"]["g"]}
        known |= {f"connections.{name}" for name in stats["connections"]}
        said = set()
        for line in PAGE.splitlines():
            if line.startswith("| ") and line.count("|") == 6:
                said |= set(re.findall(r"`([a-z_.]+)`", line.split("|")[5]))
        metrics = {name for name in said if name.startswith("ordercast_")}
        assert said - metrics - known == {"join"}
        assert metrics <= {metric.name for metric in METRICS}
