"""Commands that talk to nodes with a key and with TLS."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec
import pytest

import ordercast as oc
from certificates import signed
from ordercast.cli.credentials import given_key, given_tls

ORDERCAST = Path(sys.executable).with_name("ordercast")
KEY = "0123456789abcdef"


async def status(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, output and complaints of `ordercast status`."""
    process = await asyncio.create_subprocess_exec(
        ORDERCAST, "status", "--json", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )  # fmt: skip
    out, complaints = await process.communicate()
    return process.returncode or 0, out.decode(), complaints.decode()


def test_status_of_a_node_with_a_key_and_tls_needs_both(tmp_path):
    key_file, asker = tmp_path / "cluster.key", signed("asker")
    key_file.write_text(KEY + "\n")
    tls = [
        "--tls-cert", asker.certificate, "--tls-key", asker.key, "--tls-ca", asker.authority,
    ]  # fmt: skip

    async def scenario():
        async with (
            asyncio.timeout(60),
            oc.Node("alice", bootstrap=True, key=KEY, tls=signed("alice")) as alice,
        ):
            with_file, with_environment, without_key, without_tls = await asyncio.gather(
                status(alice.address, *tls, "--key-file", str(key_file)),
                status(alice.address, *tls, ORDERCAST_KEY=KEY),
                status(alice.address, *tls),
                status(alice.address, "--key-file", str(key_file)),
            )
        for code, out, complaints in (with_file, with_environment):
            assert code == 0, complaints
            assert msgspec.json.decode(out)["name"] == "alice"
        for code, out, complaints in (without_key, without_tls):
            assert code == 4, complaints
            assert out == ""
            assert "Traceback" not in complaints
        assert "it may want a key" in without_key[2]

    asyncio.run(scenario())


def test_a_question_in_plain_text_to_another_machine_is_bad_input():
    code, _, complaints = asyncio.run(status("192.0.2.7:7700"))
    assert code == 2
    assert "insecure" in complaints


def test_the_key_of_the_file_goes_before_that_of_the_environment(tmp_path):
    (tmp_path / "key").write_text(f"  {KEY}\n")
    assert given_key(tmp_path / "key", "another") == KEY
    assert given_key(None, "another") == "another"
    assert given_key(None, None) is None


def test_tls_is_given_with_all_three_files_or_not_at_all():
    assert given_tls(None, None, None) is None
    with pytest.raises(ValueError, match="TLS needs all three: --tls-cert, --tls-key and --tls-ca"):
        given_tls(Path("a.pem"), None, Path("ca.pem"))
