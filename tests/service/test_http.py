"""The small HTTP server: what it answers, and what it does not put up with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import pytest

from ordercast.service import http
from ordercast.service.http import Answer, HttpServer


@asynccontextmanager
async def serving() -> AsyncIterator[HttpServer]:
    server = HttpServer(
        {
            "/fine": lambda: Answer("fine: ü\n"),
            "/not": lambda: Answer("no\n", HTTPStatus.SERVICE_UNAVAILABLE),
        }
    )
    await server.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        await server.close()


async def connected(server: HttpServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = server.address.rsplit(":", 1)
    return await asyncio.open_connection(host, int(port))


async def until_open(server: HttpServer, connections: int) -> None:
    while len(server._places) != connections:
        await asyncio.sleep(0.001)


async def told(server: HttpServer, request: bytes) -> tuple[str, str]:
    """The head and the body of the answer."""
    reader, writer = await connected(server)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return head.decode(), body.decode()


async def test_a_page_is_answered_and_the_connection_closed() -> None:
    async with serving() as server:
        head, body = await told(server, b"GET /fine?x=1 HTTP/1.1\r\nHost: here\r\n\r\n")
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        assert "Content-Length: 9" in head and "Connection: close" in head
        assert body == "fine: ü\n"
        assert server.answered == {200: 1}


async def test_a_head_has_no_body() -> None:
    async with serving() as server:
        head, body = await told(server, b"HEAD /fine HTTP/1.1\r\n\r\n")
        assert "Content-Length: 9" in head and body == ""


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /not HTTP/1.1", "503 Service Unavailable"),
        (b"GET /nowhere HTTP/1.1", "404 Not Found"),
        (b"GET //fine HTTP/1.1", "404 Not Found"),
        (b"POST /fine HTTP/1.1", "405 Method Not Allowed"),
        (b"GET /fine HTTP/2.0", "505 HTTP Version Not Supported"),
        (b"GET /fine", "400 Bad Request"),
        (b"\xff\x00\x01 \xff \xff", "400 Bad Request"),
        (b"", "400 Bad Request"),
    ],
)
async def test_what_it_cannot_answer_it_says_by_a_status(request_line: bytes, status: str) -> None:
    async with serving() as server:
        head, _ = await told(server, request_line + b"\r\n\r\n")
        assert head.splitlines()[0] == f"HTTP/1.1 {status}"


async def test_an_unknown_path_lists_those_that_there_are() -> None:
    async with serving() as server:
        assert (await told(server, b"GET / HTTP/1.1\r\n\r\n"))[1] == "there are /fine, /not\n"


async def test_a_request_without_end_is_refused() -> None:
    async with serving() as server:
        head, _ = await told(server, b"GET /fine HTTP/1.1\r\n" + b"x" * (http.MAX_HEAD_BYTES + 1))
        assert "431" in head.splitlines()[0]


async def test_who_says_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.01)
    async with serving() as server:
        reader, writer = await connected(server)
        writer.write(b"GET /fine HTTP/1.1\r\n")
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert server.cut_off == 1
        writer.close()


async def test_of_more_connections_than_the_limit_the_oldest_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(http, "STAY_SECONDS", 0.0)
    async with serving() as server:
        first, _ = await connected(server)
        await until_open(server, 1)
        second, waiting = await connected(server)
        await until_open(server, 2)
        assert (await told(server, b"GET /fine HTTP/1.1\r\n\r\n"))[0].startswith("HTTP/1.1 200")
        with suppress(ConnectionResetError):
            assert await first.read() == b""
        assert server.cut_off == 1
        waiting.write(b"GET /fine HTTP/1.1\r\n\r\n")
        assert (await second.read()).startswith(b"HTTP/1.1 200")


async def test_idle_connections_never_keep_a_probe_from_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are renewed as often as they are cut off, and the probe comes from the same host."""
    monkeypatch.setattr(http, "STAY_SECONDS", 0.2)
    async with serving() as server, asyncio.TaskGroup() as tasks:
        idle = [tasks.create_task(stay_idle(server)) for _ in range(3 * http.MAX_PER_HOST)]
        await until_open(server, http.MAX_PER_HOST)
        for _ in range(5):
            head, _ = await told(server, b"GET /fine HTTP/1.1\r\nHost: here\r\n\r\n")
            assert head.startswith("HTTP/1.1 200")
        for task in idle:
            task.cancel()


async def stay_idle(server: HttpServer) -> None:
    while True:
        with suppress(OSError):
            reader, writer = await connected(server)
            await reader.read()
            writer.close()
