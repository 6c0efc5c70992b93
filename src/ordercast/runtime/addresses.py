"""Addresses as people write them: host:port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.core.ids import MAX_NAME_BYTES, check_name
from ordercast.errors import ConfigError

Address = tuple[str, int]

MAX_HOST_BYTES = MAX_NAME_BYTES - len(":65535")
MAX_PORT_DIGITS = 16  # a peer may have written them
MAX_SHOWN = 40  # characters of what is no address, in an error


def parse_address(what: str, text: object) -> Address:
    """(host, port) of "host:port" or "[v6]:port"; `what` names the option in the error."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is a str like '127.0.0.1:7700', not {type(text).__name__}")
    host, colon, port = text.rpartition(":")
    if (
        not colon
        or not check_host(host)
        or not (port.isascii() and port.isdigit())
        or len(port) > MAX_PORT_DIGITS
        or int(port) > 65_535
    ):
        shown = text if len(text) <= MAX_NAME_BYTES else text[:MAX_SHOWN] + "..."
        raise ValueError(f"{what}={shown!r} is not an address; write host:port, port 0 to 65535")
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_host(host: str) -> bool:
    """Can this stand in a Hello, and in a log?"""
    return 0 < len(host.encode(errors="surrogatepass")) <= MAX_HOST_BYTES and host.isprintable()


def parse_seeds(seeds: object) -> tuple[str, ...]:
    """The seed addresses, each checked."""
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise TypeError(f"seeds is a list of addresses like ['127.0.0.1:7700'], not {seeds!r}")
    checked = tuple(seeds)
    for seed in checked:
        parse_address("seeds", seed)
    return checked


def parse_members(members: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    """A static member list, name to address, in its order: a mapping, or lines "name=address"."""
    if isinstance(members, Mapping):
        pairs = list(members.items())
    else:
        pairs = [_split_pair(line) for line in members]
    listed: dict[str, str] = {}
    for name, address in pairs:
        check_name("node", name)
        parse_address(f"members[{name!r}]", address)
        if name in listed:
            raise ConfigError(
                f"members lists {name!r} twice ({listed[name]} and {address}): names are unique"
            )
        listed[name] = address
    if not listed:
        raise ValueError("members is empty; list at least the node that starts the cluster")
    return listed


def _split_pair(line: object) -> tuple[str, str]:
    if not isinstance(line, str) or "=" not in line:
        raise ValueError(f"members contains {line!r}; write 'name=host:port'")
    name, _, address = line.partition("=")
    return name, address
