"""The headers of every protocol and the messages between nodes, as they were first written.

Each file is written once: `v1` to `v3`, `v5` and `v8` have the messages between nodes as they came,
`v9` the packets of the cluster and the headers of all protocols since one kind of change serves all
groups, `v11` those of the two protocols with one sequencer, whose views have no numbers any more,
`v12` the packet by which a leave is confirmed that no view tells.
What a later file has of a protocol takes the place of all before it. A change that makes one of
these tests fail needs a new `header_version` of that protocol (or a new wire version, for messages
between nodes), and a new file beside these.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.process.headers import CLUSTER_HEADERS, headers_of
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.control import CONTROLS
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.frame import Splitter

FOLDER = Path(__file__).parent / "recorded"
RECORDED = {
    "control": [
        *json.loads((FOLDER / "v1" / "headers.json").read_text())["control"],
        *json.loads((FOLDER / "v2" / "control.json").read_text()),
        *json.loads((FOLDER / "v3" / "control.json").read_text()),
        *json.loads((FOLDER / "v5" / "control.json").read_text()),
        *json.loads((FOLDER / "v8" / "control.json").read_text()),
        *json.loads((FOLDER / "v10" / "control.json").read_text()),
    ],
    "cluster": [
        *json.loads((FOLDER / "v9" / "cluster.json").read_text()),
        *json.loads((FOLDER / "v12" / "cluster.json").read_text()),
    ],
    **json.loads((FOLDER / "v9" / "headers.json").read_text()),
    **json.loads((FOLDER / "v11" / "headers.json").read_text()),
}


def headers(channel: str) -> tuple[type, ...]:
    if channel == "cluster":
        return CLUSTER_HEADERS
    return CONTROLS if channel == "control" else headers_of(PROTOCOLS[channel])


@pytest.mark.parametrize("channel", RECORDED)
def test_every_recorded_header_is_read_as_what_it_was(channel: str) -> None:
    codec = ChannelCodec(headers(channel))
    for recorded in RECORDED[channel]:
        [(_, tag, era, header, payload)] = Splitter(1 << 20).feed(bytes.fromhex(recorded["hex"]))
        assert repr(codec.decode(tag, header)) == recorded["header"]
        assert (era, payload) == (3, b"body")


@pytest.mark.parametrize("channel", RECORDED)
def test_every_header_has_the_tag_it_had(channel: str) -> None:
    names = [recorded["header"].partition("(")[0] for recorded in RECORDED[channel]]
    assert [header.__name__ for header in headers(channel)] == names


def test_every_protocol_is_recorded() -> None:
    assert set(RECORDED) == {"control", "cluster", *PROTOCOLS}
