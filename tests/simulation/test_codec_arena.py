"""The same run with every packet encoded and decoded on its way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from machines import FLUSHED
from ordercast.core.events import Receive
from ordercast.process.headers import headers_of
from ordercast.protocols.registry import PROTOCOLS
from ordercast.reliability.link import LinkAck, Linked
from ordercast.simulation import Crash, FlushTo, GroupConfig, SimulationConfig, simulate
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.frame import Splitter


def through_codec(protocol: str) -> Callable[[Receive], Receive]:
    """Every packet as one frame on the channel of its group, and back."""
    found = dict.fromkeys((Linked, LinkAck, *headers_of(PROTOCOLS[protocol])))
    codec = ChannelCodec(tuple(found))
    splitter = Splitter(max_frame=1 << 20)

    def transform(packet: Receive) -> Receive:
        frame = codec.encode(packet.group, packet.era, packet.header, packet.payload)
        [(channel, tag, era, header, payload)] = splitter.feed(frame)
        return Receive(packet.src, channel, era, codec.decode(tag, header), payload)

    return transform


@pytest.mark.parametrize("protocol", FLUSHED)
@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_a_run_through_the_codec_is_the_same_run(protocol: str, loss: float) -> None:
    settings: dict[str, Any] = {
        "protocol": protocol,
        "members": 5,
        "groups": (GroupConfig(members=(0, 1, 2, 3)),),
        "messages": 30,
        "loss": loss,
        "faults": (
            FlushTo(1, (0, 1, 2, 3, 4), 10),
            Crash(2, 20, 0.5),
            FlushTo(1, (0, 1, 3, 4), 30),
        ),
        "seed": 8,
    }
    plain = simulate(SimulationConfig(**settings))
    coded = simulate(SimulationConfig(**settings, transform=through_codec(protocol)))
    assert coded.events() == plain.events()
    assert coded.quiescent and coded.statistics == plain.statistics
