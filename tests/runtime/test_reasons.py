"""A join that fails says why, in the words of the doctor, and names the doctor once."""

from __future__ import annotations

import socket
import ssl

import pytest

import ordercast as oc
from listeners import closed_port, fake_node, speaker
from ordercast.errors import PeerError
from ordercast.runtime.diagnosis.diagnose import diagnose
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.reasons import trouble_of
from ordercast.transport.security import Security


async def join_at(address: str) -> tuple[str, str]:
    """Why a node cannot join there: the reason, and the whole text."""
    with pytest.raises(oc.JoinTimeout) as failed:
        await oc.Node("bob", seeds=[address], join_timeout=0.3).start()
    return failed.value.reasons[address], str(failed.value)


async def doctor_at(address: str) -> str:
    diagnosis = Diagnosis()
    await diagnose([address], Subject(patience=1.0), diagnosis)
    [finding] = diagnosis.findings
    return finding.seen


async def test_a_join_and_the_doctor_use_the_same_words_and_the_join_names_the_doctor() -> None:
    address = closed_port()
    reason, text = await join_at(address)
    assert reason == await doctor_at(address) == "connection refused: nobody listens there"
    assert text.count("ordercast doctor") == 1
    assert f"`ordercast doctor {address}`" in text


async def test_a_join_names_the_program_that_has_the_port() -> None:
    async with speaker(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        reason, _ = await join_at(address)
        assert "an HTTP server speaks there, no node" in reason
        assert "an HTTP server answers there, not a node" in await doctor_at(address)


async def test_a_join_says_both_names_of_the_cluster() -> None:
    async with fake_node(cluster="prod") as alice:
        reason, text = await join_at(alice.address)
        assert text.count(f"{alice.address}: ") == 1
        words = "this is cluster 'prod', not 'ordercast'"
        assert words in reason and words in await doctor_at(alice.address)


@pytest.mark.parametrize(("theirs", "ours"), [("k" * 32, None), ("k" * 32, "o" * 32)])
async def test_a_join_without_the_right_key_speaks_of_the_key(theirs, ours) -> None:
    async with fake_node(security=Security.given(theirs, None)) as alice:
        with pytest.raises(oc.JoinTimeout, match="key"):
            await oc.Node("bob", seeds=[alice.address], key=ours, join_timeout=0.3).start()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (socket.gaierror(-2, "Name or service not known"), "unresolved"),
        (ConnectionRefusedError(111, "Connection refused"), "refused"),
        (TimeoutError("did not answer"), "silence"),
        (TimeoutError(), "silence"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "certificate"),
        (ssl.SSLError(1, "wrong version number"), "tls"),
        (ConnectionResetError(104, "Connection reset by peer"), "hung_up"),
        (OSError(113, "No route to host"), "no_route"),
        (PeerError("it refuses"), "peer"),
        (OSError(24, "Too many open files"), "other"),
    ],
)
def test_every_kind_of_trouble_has_words(error: Exception, kind: str) -> None:
    if isinstance(error, ssl.SSLError):  # OpenSSL sets these itself
        error.reason = "WRONG_VERSION_NUMBER"
    if isinstance(error, ssl.SSLCertVerificationError):
        error.verify_code, error.verify_message = 10, "certificate has expired"
    trouble, words = trouble_of(error)
    assert trouble == kind
    assert words and "Error" not in words
