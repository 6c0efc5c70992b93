"""The choice of transport: what is wrong is named, with what would be right."""

from __future__ import annotations

import msgspec
import pytest

from ordercast.transport.injection import Injection
from ordercast.transport.settings import IpMulticast, Udp, as_transport, label_of


@pytest.mark.parametrize("choice", ["tpc", "UDP", None, 7, b"udp", IpMulticast, "239.1.2.3:7700"])
def test_an_unknown_transport_is_refused_with_a_list_of_the_known(choice):
    with pytest.raises(ValueError, match=r"use one of 'tcp', 'udp', Udp\(...\), IpMulticast\("):
        as_transport(choice)


@pytest.mark.parametrize(
    "choice", ["tcp", Udp(), Udp(max_datagram=60_000), IpMulticast("239.1.2.3:7700", ttl=3)]
)
def test_a_transport_survives_json(choice):
    assert as_transport(msgspec.json.decode(msgspec.json.encode(choice))) == as_transport(choice)


def test_a_name_stands_for_its_defaults():
    assert as_transport("udp") == Udp()
    assert [label_of(as_transport(c)) for c in ("tcp", "udp", IpMulticast("239.1.2.3:7700"))] == [
        "tcp", "udp", "ip multicast 239.1.2.3:7700",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"max_datagram": 511}, ValueError, "max_datagram=511 must lie between 512 and 65507"),
        ({"max_datagram": 65_508}, ValueError, "max_datagram=65508"),
        ({"max_datagram": "1400"}, TypeError, "max_datagram is a whole number"),
        ({"seed": "x"}, TypeError, "seed is a whole number, not 'x'"),
        ({"queue_bytes": 0}, ValueError, "queue_bytes=0 must be positive"),
        ({"reassembly_ms": True}, TypeError, "reassembly_ms is a whole number"),
        ({"inject_loss": 1}, ValueError, "inject_loss=1 must be at least 0 and below 1"),
        ({"inject_loss": -0.1}, ValueError, "inject_loss"),
        ({"inject_duplicates": float("nan")}, ValueError, "inject_duplicates"),
        ({"inject_reordering": "0.1"}, TypeError, "inject_reordering is a share"),
    ],
)
def test_a_wrong_option_is_named(options, error, says):
    with pytest.raises(error, match=says):
        Udp(**options)


@pytest.mark.parametrize(
    "group",
    [
        "10.0.0.1:7700", "239.1.2.3", "239.1.2.3:0", "239.1.2.3:65536", "239.7.7.777:7700",
        "[ff02::1]:7700", "x:1",
    ],
)  # fmt: skip
def test_a_group_that_is_no_multicast_address_is_refused_with_one_that_is(group):
    with pytest.raises(ValueError, match=r"group=.*write it like '239\.7\.7\.7:7700'") as refused:
        IpMulticast(group)
    assert repr(group) in str(refused.value)


def test_the_name_of_an_interface_is_refused_with_what_is_wanted():
    with pytest.raises(ValueError, match="address of the interface, not its name"):
        IpMulticast("239.1.2.3:7700", interface="eth99")


@pytest.mark.parametrize("options", [{"interface": 7}, {"ttl": 0}, {"ttl": 256}])
def test_a_wrong_interface_or_ttl_is_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        IpMulticast("239.1.2.3:7700", **options)


def test_a_group_that_is_no_text_is_a_type_error():
    with pytest.raises(TypeError, match="group is a str like"):
        IpMulticast(7700)  # type: ignore[arg-type]


def arrivals(name: str, seed: int) -> list[list[bytes]]:
    settings = Udp(inject_loss=0.2, inject_duplicates=0.2, inject_reordering=0.2, seed=seed)
    injection = Injection(settings, name)
    return [injection.arrive(bytes([number])) for number in range(200)]


def test_faults_on_purpose_follow_from_the_seed_and_the_name():
    assert arrivals("alice", 1) == arrivals("alice", 1)
    assert arrivals("alice", 1) != arrivals("alice", 2)
    assert arrivals("alice", 1) != arrivals("bob", 1)


def test_faults_on_purpose_are_off_unless_asked_for():
    assert not Injection.is_asked_for(Udp(seed=7))
    assert Injection.is_asked_for(Udp(inject_reordering=0.1))
