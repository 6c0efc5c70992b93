"""What tests of datagrams share: multicast groups that no other test uses."""

from __future__ import annotations

import os
import socket

import pytest

from ordercast.errors import ConfigError
from ordercast.transport.settings import IpMulticast
from ordercast.transport.sockets import multicast_socket, prepare_to_multicast, unicast_socket

LOOPBACK = "127.0.0.1"


def free_group() -> str:
    """A multicast group of this process, at a port that is free; skips where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    group = f"239.{os.getpid() % 250 + 1}.{port // 256}.{port % 256}:{port}"
    settings = IpMulticast(group)
    sock = unicast_socket((LOOPBACK, 0), 65_536)
    try:
        with multicast_socket(settings, LOOPBACK) as hears:
            prepare_to_multicast(sock, settings, LOOPBACK)
            sock.sendto(b"?", settings.address)
            hears.settimeout(1.0)
            assert hears.recv(1) == b"?"
    except (OSError, ConfigError) as reason:
        pytest.skip(f"this machine has no multicast on its loopback interface: {reason}")
    finally:
        sock.close()
    return group
