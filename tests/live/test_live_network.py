"""The rig itself: do cables, switches, routes and the relay do what live tests rely on?"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

from netlab import namespaces
from netlab.namespaces import Namespace, Network, Refused
from netlab.relay_process import Quality, Ways
from netlab.shaping import Relay, Shaped, netem_refusal, relay_refusal, shaping, shaping_refusal

pytestmark = pytest.mark.xdist_group("live")

ARRIVES = 10.0  # seconds; a guard against hanging
VANISHES = 0.1  # seconds after which what has not come is taken for lost


class Phones:
    """A datagram socket for each member of a network. No word is said twice."""

    def __init__(self, network: Network) -> None:
        self.sockets = {name: network.socket(name, socket.SOCK_DGRAM) for name in network.members}
        self._words = map(str, count(1))

    def say(self, frm: str, to: str) -> str:
        word = next(self._words)
        self.sockets[frm].sendto(word.encode(), self.sockets[to].getsockname())
        return word

    def hears(self, name: str, *words: str, within: float = ARRIVES) -> int | None:
        """How many others came before one of these words; None if none of these comes."""
        self.sockets[name].settimeout(within)
        others = 0
        try:
            while self.sockets[name].recv(100).decode() not in words:
                others += 1
        except TimeoutError:
            return None
        return others

    def reaches(self, frm: str, to: str) -> bool:
        return self.hears(to, self.say(frm, to)) is not None

    def misses(self, frm: str, to: str) -> bool:
        return self.hears(to, self.say(frm, to), within=VANISHES) is None


@pytest.fixture
def network() -> Iterator[Network]:
    with Network(["a", "b", "c"]) as made:
        yield made


@pytest.fixture
def relay(network: Network) -> Iterator[Relay]:
    if (reason := relay_refusal()) is not None:
        pytest.skip(reason)
    with Relay(network) as started:
        yield started


@pytest.fixture
def shaped(network: Network) -> Iterator[Shaped]:
    if (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with shaping(network) as started:
        yield started


# -- namespaces -----------------------------------------------------------------------------------


def test_all_members_reach_each_other_and_nobody_reaches_the_machine(network: Network) -> None:
    phones = Phones(network)
    for frm in network.members:
        for to in network.members:
            assert phones.reaches(frm, to)
    with pytest.raises(OSError, match="unreachable"):
        phones.sockets["a"].sendto(b"word", ("192.0.2.1", 9))


def test_an_unplugged_member_is_alone_until_it_is_plugged_in_again(network: Network) -> None:
    phones = Phones(network)
    network.unplug("a")
    assert phones.misses("a", "b") and phones.misses("b", "a")
    assert phones.reaches("b", "c")
    network.plug("a")
    assert phones.reaches("a", "b") and phones.reaches("b", "a")


def test_a_partition_cuts_between_its_sides_only_and_heals(network: Network) -> None:
    phones = Phones(network)
    for sides in ((["a"], ["b", "c"]), (["a", "b"], ["c"])):  # one after the other, unhealed
        network.partition(*sides)
        for frm, to in (("a", "b"), ("b", "c"), ("c", "b"), ("a", "c")):
            together = any(frm in side and to in side for side in sides)
            arrives = phones.reaches if together else phones.misses
            assert arrives(frm, to), (frm, to, sides)
    network.heal()
    assert phones.reaches("a", "c") and phones.reaches("b", "c")


def test_a_blackhole_swallows_one_direction(network: Network) -> None:
    phones = Phones(network)
    network.blackhole("a", "b")
    with pytest.raises(OSError, match="Invalid argument"):  # that is how the kernel says it
        phones.say("a", "b")
    assert phones.reaches("b", "a") and phones.reaches("a", "c")
    network.unblackhole("a", "b")
    assert phones.reaches("a", "b")


def test_nothing_stays_behind_when_a_test_fails() -> None:
    with pytest.raises(ZeroDivisionError), Network(["a", "b"]) as network:
        inside = network.inside("a").pid
        links = Path(f"/proc/{inside}/ns/net")
        made = os.readlink(links)
        raise ZeroDivisionError
    assert not links.exists()
    assert made not in {_namespace(pid) for pid in Path("/proc").glob("[0-9]*")}


def _namespace(process: Path) -> str:
    try:
        return os.readlink(process / "ns/net")
    except OSError:  # it ended meanwhile, or is not ours to look at
        return ""


def test_whoever_is_not_root_gets_a_network_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "outermost", lambda: Namespace(as_user=True))
    try:
        made = Network(["a", "b"]).__enter__()
    except Refused as reason:
        pytest.skip(f"no user namespaces here: {reason}")
    with made:
        assert Phones(made).reaches("a", "b")


def test_a_machine_that_cannot_make_namespaces_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match=r"as root: unshare: .* in a user namespace: unshare: "):
        namespaces.outermost()


def test_what_ip_refuses_is_said_in_its_words(network: Network) -> None:
    with pytest.raises(Refused, match="Cannot find device"):
        network.hub.ip("link set nowhere up")


# -- delay, loss and cuts -------------------------------------------------------------------------


def test_netem_or_the_relay_is_used_and_one_of_them_is_there() -> None:
    print("netem:", netem_refusal() or "yes", "relay:", relay_refusal() or "yes")
    if (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with Network(["a"]) as network:
        expected = "Relay" if netem_refusal() is not None else "Netem"
        assert type(shaping(network)).__name__ == expected


def test_no_datagram_arrives_before_its_delay(network: Network, shaped: Shaped) -> None:
    phones = Phones(network)
    shaped.shape(delay_ms=60)
    start = time.monotonic()
    assert phones.reaches("a", "b")
    assert time.monotonic() - start >= 0.06
    assert phones.reaches("b", "a")
    assert time.monotonic() - start >= 0.12


def test_datagrams_are_lost_at_about_the_share_asked_for(network: Network, shaped: Shaped) -> None:
    phones = Phones(network)
    shaped.shape(loss=0.4)
    for _ in range(200):
        phones.say("a", "b")
    ends = [phones.say("a", "b") for _ in range(30)]  # one of them comes
    arrived = phones.hears("b", *ends)
    assert arrived is not None and 80 < arrived < 160  # 120, with a deviation of 7
    shaped.shape()
    assert phones.reaches("a", "b")
    for _ in range(100):
        phones.say("a", "b")
    assert phones.hears("b", phones.say("a", "b")) == 100


def test_a_tcp_connection_survives_loss_and_loses_nothing(network: Network, shaped: Shaped) -> None:
    shaped.shape(delay_ms=1, jitter_ms=2, loss=0.05)
    content = os.urandom(400_000)
    with network.socket("b", socket.SOCK_STREAM) as listener:
        listener.listen()
        with network.socket("a", socket.SOCK_STREAM) as one:
            one.connect(listener.getsockname())
            accepted, _ = listener.accept()
            with accepted:
                sending = Thread(target=_write_and_close, args=(one, content))
                sending.start()
                assert b"".join(iter(lambda: accepted.recv(65_536), b"")) == content
                sending.join()
    assert shaped.lost() > 0


def _write_and_close(one: socket.socket, content: bytes) -> None:
    with one:
        one.sendall(content)


def test_the_relay_cuts_one_direction_silently_and_mends_it(network: Network, relay: Relay) -> None:
    phones = Phones(network)
    relay.cut(["a"], ["b"])
    assert phones.misses("a", "b")
    assert phones.reaches("b", "a") and phones.reaches("a", "c")
    relay.mend()
    assert phones.reaches("a", "b")
    assert relay.counts()["a>b"]["cut"] >= 1  # the kernel says a word of its own at times


def test_the_relay_shapes_one_way_alone(network: Network, relay: Relay) -> None:
    phones = Phones(network)
    relay.shape(loss=1.0, frm=["a"], to=["c"])
    assert phones.misses("a", "c")
    assert phones.reaches("c", "a") and phones.reaches("a", "b")


def test_cables_can_be_unplugged_at_the_relay_too(network: Network, relay: Relay) -> None:
    phones = Phones(network)
    network.unplug("a")
    assert phones.misses("a", "b") and phones.reaches("c", "b")
    network.plug("a")
    assert phones.reaches("a", "b")


def test_the_relay_refuses_what_it_does_not_know(relay: Relay) -> None:
    with pytest.raises(ValueError, match="no member 'z'; there are a, b, c"):
        relay.cut(["z"], None)
    with pytest.raises(ValueError, match="loss is between 0 and 1"):
        relay.shape(loss=2)


def test_after_the_relay_the_network_is_whole_again(network: Network) -> None:
    if (reason := relay_refusal()) is not None:
        pytest.skip(reason)
    for _ in range(2):  # and it can be put in between again
        with Relay(network) as relay:
            relay.cut(None, None)
        assert Phones(network).reaches("a", "b")


# -- the relay's decisions ------------------------------------------------------------------------


def test_the_same_seed_loses_the_same_frames() -> None:
    def lost(seed: int) -> list[bool]:
        ways = Ways(("a", "b"), seed)
        ways.shape(None, None, loss=0.5)
        return [ways.delay(("a", "b")) is None for _ in range(100)]

    assert lost(1) == lost(1) != lost(2)


def test_jitter_adds_to_the_delay_and_never_takes_away() -> None:
    ways = Ways(("a", "b"), 1)
    ways.shape(None, None, delay_ms=10, jitter_ms=5)
    delays = [ways.delay(("a", "b")) or 0.0 for _ in range(200)]
    assert 0.010 <= min(delays) < 0.011 and 0.014 < max(delays) <= 0.015


def test_a_quality_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="not negative"):
        Quality(delay_ms=-1)


def test_the_relay_ends_with_its_input(relay: Relay) -> None:
    process = relay._process
    assert process is not None and process.stdin is not None
    process.stdin.close()
    assert process.wait(ARRIVES) == 0
    with pytest.raises((ValueError, Refused, subprocess.SubprocessError)):
        relay.mend()
