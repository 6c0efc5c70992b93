"""The examples as their users start them: alone, in two terminals, and with wrong arguments."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def start(example: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLES / example, *arguments],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip


def story(example: str) -> str:
    done = start(example)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_dictionary_tells_how_it_survives_a_crash() -> None:
    told = story("replicated_dictionary.py")
    assert "one of them wins: [False, True]" in told
    assert re.search(r"p3 comes late and has {'colour': 'blue', 'size': [89]}", told)
    assert told.endswith("p2 has {'colour': 'green'}\np3 has {'colour': 'green'}\n")


def test_the_lock_tells_how_a_former_holder_is_refused() -> None:
    told = story("lock_and_leader.py")
    assert "p1 holds the lock with number 1\nthe queue: ['p1', 'p2', 'p3']\n" in told
    assert re.search(r"cut off.*p2 holds.*p2 writes.*p3 holds.*p3 writes", told, re.DOTALL)
    assert re.search(r"cut off.*p2 leads since view \d+", told, re.DOTALL)
    assert told.endswith(
        "p1 is refused: 1 is older than 3\nwritten: ['report by p2', 'report by p3']\n"
    )


def test_the_rooms_tell_what_another_order_would_do() -> None:
    told = story("rooms.py")
    fifo, causal = map(int, re.findall(r"(\d+) of 100 answers were seen before", told))
    assert fifo > 0 and causal == 0
    assert "is anybody here?\n  [python] p1-1.2: nobody, it seems\n" in told


def test_the_price_boards_tell_what_two_other_orders_would_do() -> None:
    told = story("price_boards.py")
    assert "chips 30 (ann-1.2)\n  CMC 40 (ben-1.2 because of ann-1.2)\na sequencer cra" in told
    assert "CMC is at 41.0 on all boards\n" in told
    counted = re.findall(r"(\d+) of 100 sales .* differ in (\d+) of 200 places", told)
    causal, total, hybrid = [tuple(map(int, counts)) for counts in counted]
    assert causal[0] == 0 and causal[1] > 0
    assert total[0] > 0 and total[1] == 0
    assert hybrid == (0, 0)


class Terminal:
    """One person's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.address = ""

    def type(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    async def sees(self, pattern: str) -> re.Match[str]:
        """Wait for a line like this."""
        assert self._process.stdout is not None
        while raw := await self._process.stdout.readline():
            if found := re.search(pattern, raw.decode()):
                return found
        raise AssertionError(f"it ended without {pattern!r}")

    async def end(self) -> int:
        """No more is typed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await self._process.wait()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def terminal(example: str, *arguments: str) -> AsyncIterator[Terminal]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLES / example, *arguments, stdin=pipe, stdout=pipe
    )
    one = Terminal(process)
    try:
        one.address = (await one.sees(r"--join (\S+)"))[1]
        yield one
    finally:
        await one.kill()


async def test_two_terminals_share_a_dictionary() -> None:
    example = "replicated_dictionary.py"
    async with terminal(example, "--name", "alice") as alice:
        alice.type("set colour blue")
        await alice.sees("^done$")
        async with terminal(example, "--name", "bob", "--join", alice.address) as bob:
            bob.type("get colour")
            await bob.sees("^blue$")
            bob.type("cas colour red green")
            await bob.sees("^no: it is blue$")
            bob.type("cas colour blue green")
            await bob.sees("^done$")
            bob.type("delete nothing")
            await bob.sees("^not there$")
            bob.type("colour = red")
            await bob.sees("^set KEY VALUE |")
            assert await bob.end() == 0
        alice.type("all")
        await alice.sees("^{'colour': 'green'}$")
        assert await alice.end() == 0


async def test_workers_in_terminals_take_over_from_one_that_is_killed() -> None:
    example = "lock_and_leader.py"
    async with terminal(example, "--name", "alice") as alice:
        await alice.sees("^alice leads since view 1$")
        join = ("--join", alice.address)
        async with (
            terminal(example, "--name", "bob", *join) as bob,
            terminal(example, "--name", "carol", *join) as carol,
        ):
            await carol.sees("^alice leads since view 1$")
            last = int((await alice.sees(r"^alice holds the lock with number (\d+)$"))[1])
            await alice.kill()
            leader = (await carol.sees(r"^(bob|carol) leads since view \d+$"))[1]
            await bob.sees(rf"^{leader} leads since view \d+$")
            number = 0
            while number < last:
                number = int((await bob.sees(r"^bob holds the lock with number (\d+)$"))[1])


async def test_two_terminals_share_a_room() -> None:
    async with terminal("rooms.py", "--name", "alice") as alice:
        alice.type("/enter python")
        alice.type("python who knows?")
        await alice.sees(r"^\[python\] alice-1\.1: who knows\?$")
        async with terminal("rooms.py", "--name", "bob", "--join", alice.address) as bob:
            bob.type("/enter python")
            await bob.sees(r"^\[python\] alice-1\.1: who knows\?$")
            bob.type("python @alice-1.1 I do")
            await alice.sees(r"^\[python\] here are alice, bob$")
            await alice.sees(r"^\[python\] bob-1\.1 @alice-1\.1: I do$")
            bob.type("elsewhere hello")
            await bob.sees("^not in room 'elsewhere'; in python$")
            assert await bob.end() == 0


async def test_two_terminals_share_a_price_board() -> None:
    example = "price_boards.py"
    async with terminal(example, "--name", "ann") as ann:
        ann.type("/watch chips")
        ann.type("chips 30")
        await ann.sees(r"^chips 30 \(ann-1\.1\)$")
        async with terminal(example, "--name", "ben", "--join", ann.address) as ben:
            ben.type("/watch chips")
            await ben.sees(r"^chips 30 \(ann-1\.1\)$")
            ben.type("chips 31 because ann-1.1")
            await ann.sees(r"^chips 31 \(ben-1\.1 because of ann-1\.1\)$")
            ben.type("CMC 40")
            await ben.sees("^'CMC' is not watched; chips is$")
            ben.type("chips dear")
            await ben.sees("^could not convert string to float: 'dear'$")
            assert await ben.end() == 0


@pytest.mark.parametrize(
    "example", ["replicated_dictionary.py", "lock_and_leader.py", "rooms.py", "price_boards.py"]
)
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (
            ["--join", "127.0.0.1:7700"],
            "--join and --bind are for one node: say which, with --name",
        ),
        (["--name", "bob", "--join", "nowhere"], "'nowhere' is not an address; write host:port"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(
    example: str, arguments: list[str], fault: str
) -> None:
    done = start(example, *arguments)
    assert done.returncode in (1, 2)
    assert fault in done.stderr and "Traceback" not in done.stderr
