"""Right and wrong uses of options, as programs write them. `test_typing.py` has mypy read this.

A line that a type checker must refuse ends with `# wrong`, and with a part of what it should say.
"""

from __future__ import annotations

import ordercast as oc
from ordercast.testing import MakesClusters

# -- right ----------------------------------------------------------------------------------------

oc.Node("a", bootstrap=True)
oc.Node("a", seeds=["10.0.0.5:7700"], tls=oc.Tls("cert", "key", "ca"), key=b"secret")
oc.Node("a", members={"a": "10.0.0.5:7700"}, insecure=True, voters=["a"], heartbeat_ms=100)
oc.Node("a", bootstrap=True, transport="udp")
oc.Node("a", bootstrap=True, transport=oc.Udp(max_datagram=60_000), partition="merge")
oc.Node("a", discover=oc.Discovery("239.192.7.7:7701"), sequencer=True, close_timeout=1)
oc.Node("a", bootstrap=True, codec="json", resilience=None, site="tokyo", gateway=True)

shared: oc.SharedKeywords = {"max_message": 1000, "cluster": "prices", "suspect_ms": 4000}
oc.Node("a", bootstrap=True, **shared)
oc.Node("b", seeds=["10.0.0.5:7700"], **shared)

oc.LocalCluster(3, order="total", in_process=True, names=("a", "b", "c"), codec="msgpack")
oc.LocalCluster(3, sequencers=2, trace="traces", trace_level="protocol", heartbeat_ms=50)


async def joins(cluster: oc.LocalCluster, make: MakesClusters) -> None:
    await cluster.join("prices", order="total", resilience=1, slow="exclude")
    make(2, protocol="fifo", sequencer=False, window_bytes=20_000, max_message=1000)
    make()


# -- wrong ----------------------------------------------------------------------------------------

oc.Node("a", heartbeat_ms="x")  # wrong: "heartbeat_ms" .* expected "int"
oc.Node("a", hartbeat_ms=100)  # wrong: Unexpected keyword argument "hartbeat_ms"
oc.Node("a", bootstrap=True, ack_delay_ms=0.5)  # wrong: "ack_delay_ms" .* expected "int"
oc.Node("a", bootstrap=True, rejoin="no")  # wrong: "rejoin" .* expected "bool"
oc.Node("a", bootstrap=True, partition="majority")  # wrong: "partition"
oc.Node("a", bootstrap=True, codec="pickle")  # wrong: "codec"
oc.Node("a", bootstrap=True, transport="tpc")  # wrong: "transport"
oc.Node("a", bootstrap=True, detector="phi")  # wrong: "detector"
oc.Node("a", bootstrap=True, voters=3)  # wrong: "voters"
oc.Node("a", bootstrap=True, discover="239.192.7.7:7701")  # wrong: "discover"
oc.Node("a", bootstrap=True, tls="cert.pem")  # wrong: "tls"
oc.Node("a", bootstrap=True, trace_level="packets")  # wrong: "trace_level"
oc.Node("a", bootstrap=True, sequencer=2)  # wrong: "sequencer"
oc.Node("a", bootstrap=True, blocking=True)  # wrong: Unexpected keyword argument "blocking"

of_nodes: oc.SharedKeywords = {"max_massage": 1000}  # wrong: "max_massage"
of_others: oc.SharedKeywords = {"max_message": "1 MiB"}  # wrong: "max_message"

oc.LocalCluster(3, order="total", heartbeat="50")  # wrong: Unexpected keyword argument "heartbeat"
oc.LocalCluster(3, order="total", stall_ms=None)  # wrong: "stall_ms" .* expected "int"
oc.LocalCluster(3, bootstrap=True)  # wrong: Unexpected keyword argument "bootstrap"


async def joins_wrongly(cluster: oc.LocalCluster, make: MakesClusters) -> None:
    await cluster.join("prices", ordr="total")  # wrong: Unexpected keyword argument "ordr"
    await cluster.join("prices", slow="kick")  # wrong: "slow"
    make(2, sequencers="two")  # wrong: "sequencers" .* expected "int"
    make(2, window=20_000)  # wrong: Unexpected keyword argument "window"
