"""Finding a cluster over loopback multicast: questions, answers, and strangers."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from datagrams import LOOPBACK, free_group
from ordercast.errors import ConfigError
from ordercast.transport import discovery
from ordercast.transport.answering import ANSWERERS, Allowance, Answerer
from ordercast.transport.discovery import MAX_FOUND, MAX_OTHERS, Discovery, Search, read_waiting
from ordercast.transport.sockets import multicast_socket, prepare_to_multicast, unicast_socket
from ordercast.wire.control import Hello
from ordercast.wire.discovery import NONCE_BYTES, Answer, Question, pack_datagram, unpack_datagram

Run = Callable[[Coroutine[Any, Any, Any]], Any]

PATIENCE_S = 5.0  # far more than any search here needs
BRIEFLY_S = 0.05  # where there is nobody who could answer
NONCE = bytes(NONCE_BYTES)
KEY = b"0123456789abcdef"


@contextmanager
def answering(
    settings: Discovery,
    name: str = "alice",
    cluster: str = "c",
    key: bytes = b"",
    nodes: Callable[[], int] = lambda: 1,
) -> Iterator[Answerer]:
    hello = Hello(cluster=cluster, name=name, incarnation=1, advertise=f"{name}.example:7700")
    answerer = Answerer(settings, LOOPBACK, hello, key, nodes)
    try:
        yield answerer
    finally:
        answerer.close()


async def searched(settings: Discovery, timeout: float, key: bytes = b"") -> Search:
    search = Search(settings, LOOPBACK, "c", key)
    await search.run(timeout)
    return search


async def searched_until(
    settings: Discovery, told: Callable[[Search], object], key: bytes = b""
) -> Search:
    """A search that finds nothing, stopped when what it must meet has happened."""
    search = Search(settings, LOOPBACK, "c", key)
    searching = asyncio.ensure_future(search.run(PATIENCE_S))
    while not told(search):
        await asyncio.sleep(0)
    searching.cancel()
    await asyncio.wait([searching])
    assert search.found == {}
    return search


@contextmanager
def speaking(settings: Discovery) -> Iterator[socket.socket]:
    """A stranger's socket."""
    with unicast_socket((LOOPBACK, 0), 65_536) as sock:
        prepare_to_multicast(sock, settings.carrier, LOOPBACK)
        yield sock


@pytest.fixture
def settings() -> Discovery:
    return Discovery(free_group())


# -- asking and answering -------------------------------------------------------------------------


@pytest.mark.parametrize("key", [b"", KEY])
def test_a_newcomer_finds_all_nodes_of_its_cluster(
    run: Run, settings: Discovery, key: bytes
) -> None:
    async def body() -> None:
        with answering(settings, "alice", key=key), answering(settings, "bob", key=key):
            search = await searched(settings, PATIENCE_S, key)
        assert search.found == {"alice.example:7700": "alice", "bob.example:7700": "bob"}

    run(body())


def test_a_newcomer_that_came_too_early_asks_again(run: Run, settings: Discovery) -> None:
    async def body() -> None:
        search = Search(settings, LOOPBACK, "c", b"")
        searching = asyncio.ensure_future(search.run(PATIENCE_S))
        while not search.asked:
            await asyncio.sleep(0)
        with answering(settings):
            await searching
        assert search.asked > 1
        assert search.found

    run(body())


def test_answers_that_come_soon_after_the_first_are_taken_too(
    run: Run, settings: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        monkeypatch.setattr(discovery, "COLLECT_S", 0.5)
        with multicast_socket(settings.carrier, LOOPBACK) as hears, speaking(settings) as sock:
            search = Search(settings, LOOPBACK, "c", b"")
            searching = asyncio.ensure_future(search.run(PATIENCE_S))
            while not (heard := read_waiting(hears)):
                await asyncio.sleep(0)
            [(question, sender)] = heard
            nonce = unpack_datagram(question, Question, b"").nonce
            for number, name in enumerate(("alice", "bob"), start=1):
                answer = Answer(nonce, "c", name, f"{name}.example:{number}")
                sock.sendto(pack_datagram(answer, b""), sender)
                while len(search.found) < number:
                    await asyncio.sleep(0)
            await searching
        assert list(search.found.values()) == ["alice", "bob"]

    run(body())


def test_where_nobody_answers_the_search_says_what_it_asked(run: Run, settings: Discovery) -> None:
    async def body() -> None:
        search = await searched(settings, BRIEFLY_S)
        assert search.found == {}
        assert search.where() == f"multicast group {settings.group} on interface {LOOPBACK}"
        assert re.fullmatch(
            r"asked \d+ times, no node of cluster 'c' answered", search.why_nobody()
        )

    run(body())


def test_nodes_of_another_cluster_are_named_and_not_taken(run: Run, settings: Discovery) -> None:
    async def body() -> None:
        with answering(settings, cluster="prod"):
            search = await searched_until(settings, lambda search: search.others)
        assert search.why_nobody().endswith("nodes of other clusters did: 'prod'")

    run(body())


def test_a_node_that_is_in_no_cluster_does_not_answer(run: Run, settings: Discovery) -> None:
    async def body() -> None:
        with answering(settings, "alice", nodes=lambda: 0), answering(settings, "bob"):
            search = await searched(settings, PATIENCE_S)
        assert list(search.found.values()) == ["bob"]

    run(body())


def test_a_node_that_was_closed_does_not_answer(run: Run, settings: Discovery) -> None:
    async def body() -> None:
        with answering(settings, "alice") as closed, answering(settings, "bob"):
            closed.close()
            search = await searched(settings, PATIENCE_S)
        assert list(search.found.values()) == ["bob"]

    run(body())


# -- keys and strangers ---------------------------------------------------------------------------


@pytest.mark.parametrize("theirs", [b"", b"another key of 16"])
def test_a_node_with_a_key_is_silent_to_those_who_lack_it(
    run: Run, settings: Discovery, theirs: bytes
) -> None:
    async def body() -> None:
        with answering(settings, key=KEY) as answerer:
            await searched_until(settings, lambda _: answerer.refused, theirs)
            assert answerer.answered == 0

    run(body())


def test_an_answer_without_proof_is_not_taken_and_said(run: Run, settings: Discovery) -> None:
    async def body() -> None:
        with answering(settings, key=b""):
            search = await searched_until(settings, lambda search: search.unproved, KEY)
        assert search.why_nobody().endswith("1 answers came without proof of the key")

    run(body())


def test_whatever_comes_to_the_group_a_node_goes_on_answering(
    run: Run, settings: Discovery
) -> None:
    async def body() -> None:
        question = pack_datagram(Question(NONCE, "c"), b"")
        answer = pack_datagram(Answer(NONCE, "c", "eve", "evil.example:1"), b"")
        rubbish = (b"", b"x", question[:-1], question + b"\0", answer, bytes(60_000))
        with answering(settings) as answerer, speaking(settings) as sock:
            for datagram in rubbish:
                sock.sendto(datagram, settings.carrier.address)
            search = await searched(settings, PATIENCE_S)
            assert search.found
            assert answerer.refused == len(rubbish)

    run(body())


def test_answers_of_strangers_are_bounded_and_those_to_another_question_do_not_count(
    run: Run, settings: Discovery
) -> None:
    async def body() -> None:
        search = Search(settings, LOOPBACK, "c", b"")
        nonce = search._question.nonce
        with unicast_socket((LOOPBACK, 0), 65_536) as hears, speaking(settings) as sock:
            for number in range(1, MAX_FOUND + 10):
                for answer in (
                    Answer(NONCE, "c", "eve", f"evil.example:{number}"),
                    Answer(nonce, f"c{number}", "eve", f"eve.example:{number}"),
                    Answer(nonce, "c", "eve", f"eve.example:{number}"),
                ):
                    sock.sendto(pack_datagram(answer, b""), hears.getsockname())
                search._drain(hears)
        assert set(search.found) == {f"eve.example:{n}" for n in range(1, MAX_FOUND + 1)}
        assert len(search.others) == MAX_OTHERS
        assert search.refused == MAX_FOUND + 9

    run(body())


# -- a cluster that does not shout ----------------------------------------------------------------


def test_of_a_large_cluster_a_few_nodes_answer_each_question(
    run: Run, settings: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        large = 100 * ANSWERERS
        with answering(settings, "alice", nodes=lambda: large), answering(settings, "bob"):
            monkeypatch.setattr("random.random", lambda: 0.01)
            assert set((await searched(settings, PATIENCE_S)).found.values()) == {"bob"}
            monkeypatch.setattr("random.random", lambda: 0.0099)
            assert set((await searched(settings, PATIENCE_S)).found.values()) == {"alice", "bob"}

    run(body())


def test_a_node_that_is_asked_too_often_stops_answering_and_counts_it(
    run: Run, settings: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        with answering(settings) as answerer:
            monkeypatch.setattr(answerer._allowance, "take", lambda now: False)
            await searched_until(settings, lambda _: answerer.limited)
            assert answerer.stats()["answered"] == 0

    run(body())


def test_an_allowance_refills_with_time_and_never_beyond_a_seconds_worth() -> None:
    allowance = Allowance(2, now=100.0)
    assert [allowance.take(100.0) for _ in range(3)] == [True, True, False]
    assert [allowance.take(100.5) for _ in range(2)] == [True, False]
    assert [allowance.take(900.0) for _ in range(3)] == [True, True, False]


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"group": "10.0.0.1:7701"}, "is not an IPv4 multicast address"),
        ({"group": "239.192.7.7"}, "is not an IPv4 multicast address"),
        ({"group": "239.192.7.7:7701", "ttl": 256}, "ttl=256 must lie between 1 and 255"),
        ({"group": "239.192.7.7:7701", "interface": "eth0"}, "not its name"),
    ],
)
def test_wrong_settings_are_refused_and_named(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Discovery(**wrong)


def test_a_node_bound_to_ipv6_must_say_which_interface_carries_multicast() -> None:
    with pytest.raises(ConfigError, match="bind='::1' with Discovery"):
        Discovery("239.192.7.7:7701").interface_of("::1")
    assert Discovery("239.192.7.7:7701", interface="10.0.0.5").interface_of("::1") == "10.0.0.5"


def test_an_interface_of_another_machine_is_a_config_error_that_names_it(run: Run) -> None:
    elsewhere = Discovery("239.192.7.7:7701", interface="192.0.2.1")

    async def body() -> None:
        with pytest.raises(ConfigError, match=r"interface='192\.0\.2\.1' is no address of this"):
            await searched(elsewhere, BRIEFLY_S)
        hello = Hello(cluster="c", name="alice", incarnation=1)
        with pytest.raises(ConfigError, match=r"interface='192\.0\.2\.1' is no address of this"):
            Answerer(elsewhere, LOOPBACK, hello, b"", lambda: 1)

    run(body())
