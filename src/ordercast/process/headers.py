"""The headers that may stand on a channel. The place in a tuple is the tag on the wire."""

from __future__ import annotations

import msgspec

from ordercast.core.protocol import OrderingProtocol
from ordercast.membership.agreement_headers import AGREEMENT_HEADERS
from ordercast.reliability.gate import GATE_HEADERS
from ordercast.views.flush import FLUSH_HEADERS
from ordercast.views.headers import CHANGE_HEADERS

Headers = tuple[type[msgspec.Struct], ...]

CLUSTER_HEADERS: Headers = (*AGREEMENT_HEADERS, *CHANGE_HEADERS)


def headers_of(protocol: type[OrderingProtocol]) -> Headers:
    """Every header that may stand on the channel of a group of this protocol.

    Those of a gate are among them whatever the group asks for: another group of the same machine
    may have a resilience.
    """
    if protocol.together is not None:
        return protocol.headers
    return (*FLUSH_HEADERS, *GATE_HEADERS, *protocol.headers)
