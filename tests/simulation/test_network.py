"""What the network does to packets."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ordercast.core.events import Receive
from ordercast.membership.agreement_headers import Heartbeat
from ordercast.membership.node_view import ViewId
from ordercast.process.process import CLUSTER_GROUP
from ordercast.simulation import (
    Constant,
    Exponential,
    Heal,
    NetworkModel,
    Partition,
    Uniform,
    all_senders,
    one_sender,
)
from ordercast.simulation.agenda import Agenda
from ordercast.simulation.log import Sent
from ordercast.simulation.network import Medium
from ordercast.simulation.payload import unpack

Stage = Callable[..., Any]


def numbers(machine: Any, src: int = 0) -> list[int]:
    """The numbers of the packets it received from src, in the order of arrival."""
    return [packet.header.n for packet in machine.packets() if packet.src == src]


def test_loss_and_duplication_happen_as_often_as_configured(stage: Stage) -> None:
    run = stage(members=21, messages=1000, workload=one_sender(0), loss=0.2, duplicate=0.1, seed=5)
    run.run()
    medium = run.simulation.medium
    assert medium.packets_sent == 20_000
    assert medium.lost == pytest.approx(0.2 * 20_000, rel=0.05)
    assert medium.duplicated == pytest.approx(0.1 * 0.8 * 20_000, rel=0.07)
    received = sum(len(machine.packets()) for machine in run.machines)
    assert received == medium.packets_sent - medium.lost + medium.duplicated


def test_on_a_broadcast_network_one_packet_reaches_all_and_each_may_lose_it(stage: Stage) -> None:
    settings = {"members": 21, "messages": 500, "workload": one_sender(0), "loss": 0.2, "seed": 5}
    once, each = stage(**settings, broadcast=True), stage(**settings)
    once.run()
    each.run()
    assert (once.simulation.medium.packets_sent, each.simulation.medium.packets_sent) == (
        500,
        10_000,
    )
    bytes_once, bytes_each = once.simulation.medium.bytes_from, each.simulation.medium.bytes_from
    assert sum(bytes_once) * 20 == sum(bytes_each)
    assert [numbers(m) for m in once.machines] == [numbers(m) for m in each.machines]
    assert NetworkModel(broadcast=True).copies(()) == 0


def test_a_reliable_network_loses_and_repeats_nothing(stage: Stage) -> None:
    run = stage(members=4, messages=200, workload=one_sender(0), seed=5)
    run.run()
    for machine in run.machines[1:]:
        assert sorted(numbers(machine)) == list(range(1, 201))


def test_differing_delays_reorder_packets_and_equal_ones_do_not(stage: Stage) -> None:
    busy = one_sender(0, every_us=100)
    mixed = stage(members=2, messages=200, workload=busy, delay=Uniform(100, 2000))
    mixed.run()
    assert numbers(mixed.machines[1]) != sorted(numbers(mixed.machines[1]))
    equal = stage(members=2, messages=200, workload=busy, delay=Constant(1000))
    equal.run()
    assert numbers(equal.machines[1]) == list(range(1, 201))


@pytest.mark.parametrize("seed", range(5))
def test_on_a_fifo_network_nothing_overtakes_and_copies_stay_in_line(
    stage: Stage, seed: int
) -> None:
    run = stage(
        members=4,
        messages=300,
        workload=all_senders(every_us=50),
        delay=Exponential(10, 5000),
        fifo=True,
        duplicate=0.3,
        loss=0.2,
        seed=seed,
    )
    run.run()
    for machine in run.machines:
        for src in range(4):
            arrived = numbers(machine, src)
            assert arrived == sorted(arrived), f"seed {seed}"
    assert run.simulation.medium.duplicated > 0


def test_the_class_of_a_network_follows_from_what_it_does() -> None:
    assert NetworkModel(fifo=True).network_class() == "N2"
    assert NetworkModel().network_class() == "N1"
    assert NetworkModel(fifo=True, duplicate=0.1).network_class() == "N1"
    assert NetworkModel(fifo=True, loss=0.1).network_class() == "N0"
    assert NetworkModel(fifo=True).network_class(partitions=True) == "N0"


def test_a_partition_blocks_both_ways_until_it_heals(stage: Stage) -> None:
    run = stage(
        members=4,
        messages=400,
        workload=all_senders(every_us=100),
        delay=Constant(10),
        faults=(Partition(((0, 1),), 10.0), Heal(25.0)),
        seed=2,
    )
    run.run()
    crossing = {0: {2, 3}, 1: {2, 3}, 2: {0, 1}, 3: {0, 1}}
    sent = {
        (p, row.group, row.number): tick
        for p, tick, row in run.simulation.log.rows()
        if isinstance(row, Sent)
    }
    met = 0
    for p, machine in enumerate(run.machines):
        heard = {
            (packet.src, packet.group, unpack(packet.payload)[0]) for packet in machine.packets()
        }
        for key, tick in sent.items():
            if key[0] == p:
                continue
            cut = key[0] in crossing[p] and 1001 <= tick < 2501
            met += cut
            assert (key in heard) is not cut
    assert met == run.simulation.medium.cut > 100


def test_a_packet_under_way_when_the_partition_begins_still_arrives(stage: Stage) -> None:
    run = stage(
        members=2,
        messages=1,
        workload=one_sender(0),
        delay=Constant(5000),
        faults=(Partition(((0,), (1,)), 2.0),),
    )
    run.run()
    assert numbers(run.machines[1]) == [1]


def carried(medium: Medium, start: int = 0) -> list[tuple[int, int]]:
    """(receiver, era) of the packets of the cluster from tick `start` on, as they arrive."""
    ticks = sorted(tick for tick in medium.packets if tick >= start)
    return [(to, batch[0].era) for tick in ticks for to, batch in medium.packets[tick]]


def test_connections_keep_packets_of_the_cluster_in_order_and_a_cut_holds_them_up() -> None:
    model = NetworkModel(loss=0.9, delay=Uniform(10, 5000), connections=True)
    medium = Medium(model, 3, Agenda().packets, Random(1))

    def say(first: int, last: int, now: int) -> None:
        for era in range(first, last + 1):
            medium.carry(0, now, [((1, 2), CLUSTER_GROUP, era, Heartbeat(ViewId()), b"")])

    say(1, 20, now=1)
    medium.partition(((1,),), 3)
    say(21, 30, now=2)
    assert [era for to, era in carried(medium) if to == 1] == list(range(1, 21))
    assert [era for to, era in carried(medium) if to == 2] == list(range(1, 31))
    medium.heal()
    medium.go_on(10_000)
    assert [era for to, era in carried(medium) if to == 1] == list(range(1, 31))


def test_a_crash_loses_the_last_packets_of_a_connection_and_none_before_them() -> None:
    medium = Medium(NetworkModel(connections=True), 2, Agenda().packets, Random(3))
    for era in range(1, 41):
        medium.carry(0, era, [((1,), CLUSTER_GROUP, era, Heartbeat(ViewId()), b"")])
    medium.forget_sender(0, 0.1)
    kept = [era for _, era in carried(medium)]
    assert 0 < len(kept) < 40 and kept == list(range(1, len(kept) + 1))


def test_a_connection_that_breaks_loses_what_is_on_it_and_what_follows_until_there_is_another() -> (
    None
):
    medium = Medium(NetworkModel(connections=True), 3, Agenda().packets, Random(3))

    def say(era: int) -> None:
        medium.carry(0, era, [((1, 2), CLUSTER_GROUP, era, Heartbeat(ViewId()), b"")])

    say(1)
    medium.reset(0, 1)
    say(2)
    assert sorted(carried(medium)) == [(2, 1), (2, 2)]
    medium.connect_again(1, 0)
    say(3)
    assert sorted(carried(medium)) == [(1, 3), (2, 1), (2, 2), (2, 3)]


def test_every_packet_passes_through_the_transform(stage: Stage) -> None:
    seen: list[Receive] = []

    def through(packet: Receive) -> Receive:
        seen.append(packet)
        return Receive(packet.src, packet.group, packet.era, packet.header, packet.payload[::-1])

    run = stage(members=3, messages=5, workload=one_sender(0), transform=through)
    run.run()
    assert len(seen) == 5
    originals = {packet.payload[::-1] for packet in seen}
    for machine in run.machines[1:]:
        assert {packet.payload for packet in machine.packets()} == originals


def test_all_receivers_of_a_multicast_share_one_event(stage: Stage) -> None:
    run = stage(members=3, messages=1, workload=one_sender(0))
    run.run()
    assert run.machines[1].packets()[0] is run.machines[2].packets()[0]
