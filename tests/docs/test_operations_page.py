"""docs/OPERATIONS.md is true: its daemons start, its files are accepted, its numbers hold."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ordercast.cli.app import app
from ordercast.runtime import founding
from ordercast.runtime.options import NodeOptions
from ordercast.service import daemon, http, member, sequencer
from ordercast.service.layers import ConfigError, load
from ordercast.service.settings import KINDS, SequencerSettings

PAGE = (Path(__file__).parents[2] / "docs" / "OPERATIONS.md").read_text()
BIN = Path(sys.executable).parent
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("ORDERCAST_")} | {
    "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]),
    "COLUMNS": "80",
}
COMMANDS = (
    "node", "sequencer", "groups", "sequencers", "migrate", "drain", "undrain", "forget", "recover",
)  # fmt: skip


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def free_ports(count: int) -> list[str]:
    """Of as many digits as those of the page, so that tables keep their layout."""
    found: dict[str, socket.socket] = {}
    for port in range(7800, 9400):
        held = socket.socket()
        try:
            held.bind(("127.0.0.1", port))
            found[str(port)] = held
        except OSError:
            held.close()
        if len(found) == count:
            break
    for held in found.values():
        held.close()
    return list(found)


def with_other_ports(texts: list[str]) -> list[str]:
    used = sorted(set(re.findall(r"127\.0\.0\.1:(\d{4})", " ".join(texts))))
    ports = dict(zip(used, free_ports(len(used)), strict=True))
    pattern = re.compile(r"(?<=127\.0\.0\.1:)\d{4}")
    return [pattern.sub(lambda found: ports[found.group()], text) for text in texts]


async def started(command: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command), env=ENVIRONMENT, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    while line := await process.stderr.readline():
        if b"msg=ready" in line:
            return process
    raise AssertionError(f"{command!r} did not start")


@pytest.mark.xdist_group("servers")
async def test_the_daemons_of_the_page_start_and_are_listed_as_it_shows() -> None:
    *starts, listing, table = with_other_ports([*blocks("sh"), blocks("text")[0]])
    commands = [line for block in starts for line in block.splitlines()]
    assert len(commands) == 3
    processes = [await started(command) for command in commands]
    try:
        shown = await asyncio.create_subprocess_exec(
            *shlex.split(listing), env=ENVIRONMENT, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await shown.communicate()
        assert out.decode() == table
    finally:
        for process in reversed(processes):
            process.terminate()
            assert await process.wait() == 0


def test_the_file_of_the_page_is_accepted_and_its_unit_starts_a_daemon_with_it(
    tmp_path: Path,
) -> None:
    text, _ = blocks("toml")
    file = tmp_path / "sequencer.toml"
    file.write_text(text)
    settings = load(SequencerSettings, file).settings
    assert settings.other_peers == ("10.0.0.6:7700", "10.0.0.7:7700")
    assert settings.node == {
        "heartbeat_ms": 200,
        "suspect_ms": 2000,
        "voters": ("s1", "s2", "s3"),
    }
    [unit] = blocks("ini")
    [start] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    words = start.replace("/etc/ordercast/sequencer.toml", str(file)).replace("%H", "s1").split()
    assert words.pop(0).endswith("/ordercast")
    done = subprocess.run(
        [BIN / "ordercast", *words, "--check"], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    [stop] = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(stop) > settings.drain_timeout + NodeOptions().close_timeout


def test_the_file_of_a_site_is_accepted_with_the_flags_of_each_node(tmp_path: Path) -> None:
    _, text = blocks("toml")
    file = tmp_path / "node.toml"
    file.write_text(text)
    commands = re.findall(r"`ordercast (node --config .*?)`", PAGE)
    assert len(commands) == 3
    for command in commands:
        words = command.replace("/etc/ordercast/node.toml", str(file)).split()
        done = CliRunner().invoke(app, [*words, "--check"], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.stderr
        assert "tokyo" in done.stdout


def test_wrong_settings_are_told_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sequencer.toml").write_text("bootstrap = true\nlissten = ''\ninsecure = 'yes'\n")
    with pytest.raises(ConfigError) as refused:
        load(SequencerSettings, Path("sequencer.toml"), {"ORDERCAST_HTPP": "off"})
    assert blocks("text")[1] == f"error: {refused.value}\n"


def test_the_program_of_the_page_prints_what_it_shows() -> None:
    [program] = blocks("python")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == blocks("text")[2], done.stderr


def test_the_three_ways_to_write_a_setting_mean_the_same(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('listen = "10.0.0.5:7700"\nbootstrap = true\n[node]\nheartbeat_ms = 200\n')
    variables = {"ORDERCAST_LISTEN": "10.0.0.5:7700", "ORDERCAST_NODE_HEARTBEAT_MS": "200"}
    flags = {"listen": "10.0.0.5:7700", "node.heartbeat_ms": "200", "bootstrap": True}
    written = (
        load(SequencerSettings, file),
        load(SequencerSettings, None, variables, {"bootstrap": True}),
        load(SequencerSettings, flags=flags),
    )
    assert len({str(loaded.settings) for loaded in written}) == 1
    for variable, value in variables.items():
        assert f"`{variable}={value}`" in PAGE


def test_every_option_of_the_commands_is_a_setting_or_stands_on_the_page() -> None:
    commands = typer.main.get_command(app).commands
    keys = {key for kind in KINDS for key in kind.__struct_fields__}
    named = PAGE + " ".join(f"--{key.replace('_', '-')}" for key in keys)
    shared = {"--cluster", "--seed", "--insecure"}
    for name in COMMANDS:
        options = [o for one in commands[name].params if not one.hidden for o in one.opts]
        assert [o for o in options if o.startswith("--") and o not in named + str(shared)] == []
        assert f"ordercast {name}" in PAGE


def test_the_page_states_the_limits_that_hold() -> None:
    text = " ".join(PAGE.split())
    assert f"no answer in {founding.ASK_SECONDS:g} s" in text
    assert f"{http.MAX_HEAD_BYTES // 1024} KiB and {http.REQUEST_SECONDS:g} seconds" in text
    assert f"{http.MAX_CONNECTIONS} connections are served" in text
    assert f"`close_timeout` ({NodeOptions().close_timeout:g} s)" in text
    assert SequencerSettings().http in text


def test_every_message_of_the_daemon_stands_on_the_page() -> None:
    source = "".join(Path(m.__file__).read_text() for m in (daemon, member, sequencer))
    said = re.findall(r'log\.(?:info|warning|error|log)\([^"]*"([^"]+)"', source)
    said += re.findall(r'logging\.INFO, "([^"]+)"', source)
    wanted = {text for text in said if "starts a cluster" not in text}
    assert [text for text in sorted(wanted) if f"| `{text}` |" not in PAGE] == []
    assert json.loads(blocks("json")[0])["msg"] in wanted
