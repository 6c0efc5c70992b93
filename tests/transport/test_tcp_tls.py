"""TLS: who shows a certificate of the authority gets in, and everybody else is told apart."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess

import msgspec
import pytest

from certificates import authority, signed
from eavesdropper import Relay
from ordercast.errors import ConfigError, PeerError
from ordercast.transport.security import Security
from ordercast.transport.tcp import Limits, connect, listen
from ordercast.transport.tls import Tls, TlsContexts, as_tls, certificate_fault, fault_of
from ordercast.wire.frame import pack

FRAME = pack(1, 0, 1, b"head", b"body")
LARGE = pack(1, 0, 1, b"head", bytes(300_000))


def secured(name: str, by: str = "ours", key: bytes = b"") -> Security:
    return Security(tls=signed(name, by), key=key)


def stranger(tls: Tls | None) -> ssl.SSLContext:
    """One that believes everything, and shows that certificate, or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if tls is not None:
        context.load_cert_chain(tls.certificate, tls.key)
    return context


async def told(reader) -> bytes:
    with contextlib.suppress(OSError):
        return await reader.read()
    return b""


@pytest.mark.parametrize("key", [b"", b"k" * 16], ids=["tls", "tls and key"])
def test_two_nodes_of_one_authority_talk(run, owner, key):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        listener = await a.listen(security=secured("alice", key=key))
        conn = await b.connect(listener, security=secured("bob", key=key))
        a.at_frames = lambda conn: conn.send(FRAME)
        for frame in (FRAME, LARGE, FRAME):
            conn.send(frame)
        await a.until(lambda a: len(a.frames) == 3)
        assert [len(frame[4]) for frame in a.frames] == [4, 300_000, 4]
        await b.until(lambda b: b.frames)
        conn.close("done")
        await a.until(lambda a: a.closed)
        assert a.closed == ["closed by the peer"]
        assert a.connections[0].peer[0] == "127.0.0.1"

    run(scenario())


def test_nothing_that_two_nodes_say_can_be_read_on_the_way(run, owner):
    async def scenario():
        a, b = owner("alice", cluster="prices"), owner("bob", cluster="prices")
        listener = await a.listen(security=secured("one"))
        relay = Relay()
        async with relay.before(listener.address) as (host, port):
            conn = await connect(host, port, hello=b.hello, handler=b, security=secured("two"))
            conn.send(FRAME)
            await a.until(lambda a: a.frames)
        seen = b"".join(relay.sent + relay.answered)
        words = (b"OCST", b"prices", b"alice", b"bob", b"head", b"body")
        assert not any(word in seen for word in words)

    run(scenario())


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (None, "it showed no certificate"),
        (("old", "ours", -1), "the certificate has expired"),
        (("eve", "theirs"), "the certificate is signed by another authority"),
    ],
    ids=["none", "expired", "another authority"],
)
def test_who_shows_no_good_certificate_gets_nothing_and_the_owner_learns_why(
    run, owner, shown, reason
):
    async def scenario():
        a = owner("alice")
        listener = await a.listen(security=secured("alice"))
        context = stranger(signed(*shown) if shown else None)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(*listener.address, ssl=context)
            a.strangers.append(writer)
            assert await told(reader) == b""
        await a.until(lambda a: a.closed)
        assert a.closed == [f"PeerError: TLS failed: {reason}"]
        assert listener.counters.faults == 1

    run(scenario())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_only_tls_1_3_is_accepted(run, owner, version):
    async def scenario():
        a = owner("alice")
        listener = await a.listen(security=secured("alice"))
        context = stranger(signed("old-fashioned"))
        context.maximum_version = version
        is_new = version is ssl.TLSVersion.TLSv1_3
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(*listener.address, ssl=context)
            a.strangers.append(writer)
            if is_new:
                assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
                writer.close()
            else:
                assert await told(reader) == b""
        await a.until(lambda a: a.closed)
        reason = "PeerError: TLS failed: it speaks an older TLS than 1.3"
        assert (a.closed == [reason]) is not is_new

    run(scenario())


def test_a_node_does_not_go_down_to_tls_1_2_where_it_connects(run, owner):
    async def scenario():
        b = owner("bob")
        theirs = TlsContexts(signed("alice")).accepting
        theirs.minimum_version = theirs.maximum_version = ssl.TLSVersion.TLSv1_2
        server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0, ssl=theirs)
        host, port = server.sockets[0].getsockname()
        with pytest.raises(ConnectionResetError, match="during the TLS handshake"):
            await connect(host, port, hello=b.hello, handler=b, security=secured("bob"))
        server.close()

    run(scenario())


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\r\n\r\n", b"OCST\x00\x00\x10" + bytes(16)])
def test_a_plain_text_client_gets_only_a_closed_connection(run, owner, words):
    async def scenario():
        a = owner("alice")
        await a.listen(security=secured("alice"))
        reader, writer = await a.dial()
        writer.write(words)
        assert await told(reader) == b""
        await a.until(lambda a: a.closed)
        assert a.closed == ["PeerError: TLS failed: it does not speak TLS"]

    run(scenario())


def test_a_plain_node_that_connects_to_one_with_tls_is_told_what_may_be_wrong(run, owner):
    async def scenario():
        listener = await owner("alice").listen(security=secured("alice"))
        with pytest.raises(PeerError, match=r"it may want a key, or another certificate|broke"):
            await owner("bob").connect(listener)

    run(scenario())


def test_a_node_with_tls_that_connects_to_a_plain_one_is_told_what_may_be_wrong(run, owner):
    async def scenario():
        a = owner("alice")
        listener = await a.listen()
        with pytest.raises(ConnectionResetError, match="it may not use TLS"):
            await owner("bob").connect(listener, security=secured("bob"))
        await a.until(lambda a: a.closed)
        assert "TLS speaks there" in a.closed[0]

    run(scenario())


def test_the_side_that_connects_checks_the_certificate_too(run, owner):
    async def scenario():
        listener = await owner("alice").listen(security=secured("eve", by="theirs"))
        with pytest.raises(ssl.SSLError) as caught:
            await owner("bob").connect(listener, security=secured("bob"))
        assert fault_of(caught.value) == "the certificate is signed by another authority"

    run(scenario())


def test_a_certificate_without_the_key_is_not_enough(run, owner):
    async def scenario():
        a = owner("alice")
        listener = await a.listen(security=secured("alice", key=b"k" * 16))
        with pytest.raises(PeerError, match="before it proved the key"):
            await owner("bob").connect(listener, security=secured("bob", key=b"K" * 16))

    run(scenario())


def test_handshakes_under_way_count_as_strangers_and_have_their_time(run, owner):
    async def scenario():
        a = owner("alice")
        limits = Limits(hello_timeout_s=0.2, max_unknown=2, unknown_stay_s=0.0)
        listener = await a.listen(limits, security=secured("alice"))
        silent = [await a.dial() for _ in range(3)]
        await a.until(lambda a: a.closed)
        assert a.closed == ["it had not said hello, and its place was needed"]
        assert await told(silent[0][0]) == b""
        assert listener.counters.turned_away == 1
        await a.until(lambda a: len(a.closed) == 3)
        assert [await told(reader) for reader, _ in silent] == [b""] * 3
        await owner("bob").connect(listener, security=secured("bob"))

    run(scenario())


@pytest.mark.parametrize("first_bytes", [b"", b"\x16"], ids=["silent", "one byte"])
def test_idle_connections_of_one_host_keep_no_node_out(run, owner, first_bytes):
    async def scenario():
        a = owner("alice")
        key = b"k" * 16
        limits = Limits(hello_timeout_s=1000, max_unknown=8, unknown_stay_s=0.01)
        listener = await a.listen(limits, security=secured("alice", key=key))
        for _ in range(5):
            for _ in range(10):
                _, writer = await a.dial()
                writer.write(first_bytes)
            await owner("bob").connect(listener, security=secured("bob", key=key))
        assert len(listener.places) <= 8
        assert listener.counters.opened == 5

    run(scenario())


def test_a_listener_that_is_closed_drops_who_is_in_the_middle_of_a_handshake(run, owner):
    async def scenario():
        a = owner("alice")
        listener = await a.listen(security=secured("alice"))
        reader, _ = await a.dial()
        while not listener.places:
            await asyncio.sleep(0)
        listener.close()
        await a.until(lambda a: a.closed)
        assert a.closed == ["the listener was closed"]
        assert await told(reader) == b""
        with pytest.raises(OSError):
            await owner("bob").connect(listener, security=secured("bob"))

    run(scenario())


def test_a_port_that_is_taken_is_an_error_that_names_it(run, owner):
    async def scenario():
        a = owner("alice")
        taken = (await a.listen()).address[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{taken}"):
            await listen("127.0.0.1", taken, hello=a.hello, handler=a, security=secured("alice"))

    run(scenario())


# -- files ----------------------------------------------------------------------------------------


def test_good_files_have_no_fault():
    assert certificate_fault(signed("alice")) == ""


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"certificate": "missing.pem"}, "tls.certificate='missing.pem': No such file"),
        ({"certificate": "key of alice"}, "there is no certificate in PEM format"),
        ({"authority": "key of alice"}, r"tls.authority=.*: there is no certificate in PEM"),
        ({"key": "certificate"}, r"tls.key=.*: there is no private key in PEM"),
        ({"key": "key of bob"}, r"tls.key=.*: it does not fit the certificate"),
        ({"key": "locked"}, "is locked with a passphrase"),
        ({"certificate": "old", "key": "key of old"}, "the certificate has expired; no node would"),
        ({"authority": "theirs"}, "the certificate is signed by another authority"),
    ],
    ids=[
        "missing", "no certificate", "no authority", "no key", "another's key", "locked key",
        "expired", "another authority",
    ],
)  # fmt: skip
def test_a_fault_of_the_files_is_named_when_they_are_first_looked_at(tmp_path, fields, fault):
    alice, locked = signed("alice"), tmp_path / "locked.key"
    lock = ["openssl", "pkey", "-aes256", "-passout", "pass:word", "-in", alice.key, "-out", locked]
    subprocess.run(lock, check=True)
    files = {
        "key of alice": alice.key,
        "certificate": alice.certificate,
        "key of bob": signed("bob").key,
        "locked": locked,
        "old": signed("old", "ours", -1).certificate,
        "key of old": signed("old", "ours", -1).key,
        "theirs": authority("theirs").pem,
    }
    given = {"certificate": alice.certificate, "key": alice.key, "authority": alice.authority}
    tls = Tls(**given | {name: files.get(file, file) for name, file in fields.items()})
    with pytest.raises(ConfigError, match=fault):
        Security(tls=tls)
    assert certificate_fault(tls)


def test_tls_is_given_as_a_tls_or_as_json_makes_it():
    tls = signed("alice")
    assert as_tls(tls) is tls
    assert as_tls(msgspec.to_builtins(tls)) == tls
    with pytest.raises(TypeError, match=r"tls is ordercast\.Tls\(.*\), not bool"):
        as_tls(True)
    with pytest.raises(TypeError, match=r"tls\.key is the path of a file, not NoneType"):
        Tls("node.pem", None, "ca.pem")
