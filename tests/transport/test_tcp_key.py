"""Only who has the key of the cluster gets in, and nobody else learns a name."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from eavesdropper import Relay
from ordercast.errors import PeerError
from ordercast.transport.greeting import Greeting
from ordercast.transport.security import Security
from ordercast.transport.tcp import Limits, connect
from ordercast.wire.control import Challenge, Hello, Proof, Refuse
from ordercast.wire.frame import pack
from ordercast.wire.opening import pack_opening, split_opening

FRAME = pack(1, 0, 1, b"head", b"body")
OURS, THEIRS = Security(key=b"k" * 16), Security(key=b"K" * 16)
HELLO = Hello(cluster="secret-cluster", name="alice", incarnation=1)


async def all_of(reader) -> bytes:
    """What comes until the connection is closed."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(1000):
            data += piece
    return data


def test_two_that_have_the_key_learn_who_the_other_is_and_talk(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        listener = await a.listen(security=OURS)
        conn = await b.connect(listener, security=OURS)
        assert conn.hello.identity == a.hello.identity
        conn.send(FRAME)
        await a.until(lambda a: a.frames)
        assert a.connections[0].hello.identity == b.hello.identity
        assert listener.counters.faults == conn.counters.faults == 0

    run(scenario())


@pytest.mark.parametrize(
    ("mine", "yours", "seen_here", "seen_there"),
    [
        (OURS, THEIRS, "PeerError: its proof is wrong", "before it proved the key"),
        (OURS, Security(), "PeerError: it said hello before it proved", "it may want a key"),
        (Security(), OURS, "PeerError: it asks for a proof of the key", "before it proved the key"),
    ],
    ids=["another key", "no key", "a key for a node without"],
)
def test_who_has_another_key_or_none_is_closed_and_both_sides_say_why(
    run, owner, mine, yours, seen_here, seen_there
):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        listener = await a.listen(security=mine)
        with pytest.raises(PeerError, match=f"closed by the peer .*{seen_there}"):
            await b.connect(listener, security=yours)
        await a.until(lambda a: a.closed)
        assert a.closed[0].startswith(seen_here)
        assert a.connections == b.connections == []
        assert listener.counters.faults == 1

    run(scenario())


def test_another_cluster_with_the_same_key_is_refused_by_name(run, owner):
    async def scenario():
        listener = await owner("alice", cluster="red").listen(security=OURS)
        with pytest.raises(PeerError, match="this is cluster 'red', not 'blue'"):
            await owner("bob", cluster="blue").connect(listener, security=OURS)

    run(scenario())


def test_the_words_of_a_good_opening_said_again_let_nobody_in(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        listener = await a.listen(security=OURS)
        relay = Relay()
        async with relay.before(listener.address) as (host, port):
            conn = await connect(host, port, hello=b.hello, handler=b, security=OURS)
            conn.send(FRAME)
            await a.until(lambda a: a.frames)
            conn.abort("recorded")
            await a.until(lambda a: a.closed)
        reader, writer = await a.dial()
        writer.write(b"".join(relay.sent))
        told = await all_of(reader)
        assert told == b"" or type(split_opening(told)[0]) is Challenge
        await a.until(lambda a: len(a.closed) == 2)
        assert a.closed[1].startswith("PeerError: its proof is wrong")
        assert len(a.connections) == len(a.frames) == 1

    run(scenario())


def test_a_listener_that_repeats_an_earlier_one_is_not_believed(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bob")
        listener = await a.listen(security=OURS)
        relay = Relay()
        async with relay.before(listener.address) as (host, port):
            conn = await connect(host, port, hello=b.hello, handler=b, security=OURS)
            conn.abort("recorded")
        heard = []

        async def repeat(reader, writer):
            writer.write(b"".join(relay.answered))
            heard.append(await all_of(reader))
            writer.close()

        server = await asyncio.start_server(repeat, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        with pytest.raises(PeerError, match="its proof is wrong"):
            await connect(host, port, hello=b.hello, handler=b, security=OURS)
        server.close()
        assert len(b.connections) == 1

    run(scenario())


def test_a_node_is_not_convinced_by_its_own_words(run, owner):
    async def scenario():
        async def echo(reader, writer):
            while data := await reader.read(1000):
                writer.write(data)
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        b = owner("bob")
        with pytest.raises(PeerError, match="its proof is wrong"):
            await connect(host, port, hello=b.hello, handler=b, security=OURS)
        server.close()

    run(scenario())


def test_who_has_not_proved_the_key_cannot_turn_a_node_away(run, owner):
    async def scenario():
        async def refuse(reader, writer):
            await reader.read(1000)
            writer.write(pack_opening(Refuse("name", "there is another bob already")))

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        b = owner("bob")
        with pytest.raises(PeerError, match="it refused before it proved that it has the key"):
            await connect(host, port, hello=b.hello, handler=b, security=OURS)
        server.close()

    run(scenario())


def test_a_hello_changed_on_the_way_is_found_out(run, owner):
    async def scenario():
        a, b = owner("alice"), owner("bobby")
        listener = await a.listen(security=OURS)
        relay = Relay(lambda data: data.replace(b"bobby", b"carol"))
        async with relay.before(listener.address) as (host, port):
            with pytest.raises(PeerError, match="closed by the peer before its hello"):
                await connect(host, port, hello=b.hello, handler=b, security=OURS)
            await a.until(lambda a: a.closed)
        assert "the proof in its hello is wrong" in a.closed[0]
        assert a.connections == []

    run(scenario())


def test_no_name_is_said_before_the_other_side_has_proved_the_key(run, owner):
    async def scenario():
        a, b = owner("alice", cluster="prices"), owner("bob", cluster="prices")
        listener = await a.listen(security=OURS)
        relay = Relay()
        async with relay.before(listener.address) as (host, port):
            conn = await connect(host, port, hello=b.hello, handler=b, security=OURS)
            conn.abort("recorded")
        for side in (relay.sent, relay.answered):
            data, kinds = b"".join(side), []
            while data and type(split_opening(data)[0]) is not Hello:
                message, end = split_opening(data)
                kinds.append(type(message))
                assert not any(name in data[:end] for name in (b"alice", b"bob", b"prices"))
                data = data[end:]
            assert kinds == [Challenge, Proof]

    run(scenario())


def test_a_stranger_who_asks_gets_a_random_number_and_a_closed_connection(run, owner):
    async def scenario():
        a = owner("alice")
        await a.listen(Limits(hello_timeout_s=3600), security=OURS)
        numbers = set()
        for _ in range(2):
            reader, writer = await a.dial()
            writer.write(pack_opening(Challenge(bytes(32))))
            told = await reader.readexactly(len(pack_opening(Challenge(bytes(32)))))
            challenge, end = split_opening(told)
            assert type(challenge) is Challenge
            assert len(told) == end
            numbers.add(challenge.nonce)
            writer.write(pack_opening(Proof(bytes(32))))
            assert await all_of(reader) == b""
        assert len(numbers) == 2
        await a.until(lambda a: len(a.closed) == 2)
        assert all("its proof is wrong" in reason for reason in a.closed)

    run(scenario())


def test_an_opening_with_a_key_may_come_in_single_bytes(run, owner):
    async def scenario():
        a, b = owner("alice"), Greeting(OURS.key, "connects")
        await a.listen(security=OURS)
        reader, writer = await a.dial()
        message = b.first(HELLO)
        while type(message) is not Hello:
            for byte in pack_opening(message):
                writer.write(bytes([byte]))
                await asyncio.sleep(0)
            answer, _ = split_opening(await reader.read(1000))
            message = b.answer(answer, HELLO)
        writer.write(pack_opening(b.signed(a.hello)) + FRAME)
        await a.until(lambda a: a.frames)

    run(scenario())


def opened() -> tuple[Greeting, Greeting]:
    """Two sides of one connection that have challenged each other."""
    one, other = Greeting(OURS.key, "connects"), Greeting(OURS.key, "accepts")
    one.answer(other.answer(one.first(HELLO), HELLO), HELLO)
    return one, other


def test_a_second_challenge_and_a_second_proof_are_faults():
    one, other = opened()
    with pytest.raises(PeerError, match="a second challenge"):
        other.answer(Challenge(bytes(32)), HELLO)
    other.answer(Proof(one._prove("connects")), HELLO)
    with pytest.raises(PeerError, match="it sent a proof that was not asked for"):
        other.answer(Proof(one._prove("connects")), HELLO)


def test_a_proof_before_the_challenge_is_a_fault():
    with pytest.raises(PeerError, match="it sent a proof that was not asked for"):
        Greeting(OURS.key, "accepts").answer(Proof(bytes(32)), HELLO)


@pytest.mark.parametrize("key", ["short", b"k" * 15, b"k" * 1025])
def test_a_key_that_can_be_guessed_or_is_endless_is_refused_and_not_shown(key):
    with pytest.raises(ValueError, match=f"the key has {len(key)} bytes; it must have 16 to 1024"):
        Security.given(key, None)


def test_a_key_stands_in_no_text_about_it():
    assert "0123456789abcdef" not in repr(Security.given("0123456789abcdef", None))


def test_a_text_as_a_key_is_its_bytes():
    assert Security.given("0123456789abcdef", None).key == b"0123456789abcdef"
    with pytest.raises(TypeError, match="key is bytes or a str, not int"):
        Security.given(12345, None)
