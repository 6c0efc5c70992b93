"""Where settings come from: defaults < a TOML file < the environment < flags.

Every value keeps where it was found. All that is wrong is told at once, each with its place.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from ordercast.errors import ConfigError
from ordercast.service.settings import Settings, checked, contradictions, kind_of, node_options

PREFIX = "ORDERCAST_"
OTHER_VARIABLES = ("ORDERCAST_KEY", "ORDERCAST_CONFIG")  # read by the commands themselves
MAX_FILE_BYTES = 1024 * 1024

S = TypeVar("S", bound=Settings)

SWITCHES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

FAMILIAR = {"key": "key_file", "seeds": "peers", "bind": "listen", "port": "listen"}
"""Names that a key has in other places, such as `Node`."""

# A service named "ordercast" makes Kubernetes put ORDERCAST_SERVICE_HOST, ORDERCAST_PORT_7700_TCP
# and the like into every container: they are not meant for us.
KUBERNETES = re.compile(
    r"ORDERCAST_(\w+_)?(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_(TCP|UDP|SCTP)\w*)"
)


class Given(msgspec.Struct, frozen=True):
    """A value, as it was found."""

    key: str
    value: object
    where: str  # for people


class Loaded(msgspec.Struct, Generic[S], frozen=True):
    """The settings, and where those were found that are not defaults."""

    settings: S
    places: dict[str, str]


def keys_of(kind: type[Settings]) -> tuple[str, ...]:
    """Every key of these settings."""
    top = (key for key in kind.__struct_fields__ if key != "node")
    return (*top, *(f"node.{option}" for option in node_options(kind)))


def load(
    kind: type[S],
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Loaded[S]:
    """The settings of these layers, later ones first; `ConfigError` names all that is wrong."""
    problems: list[str] = []
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    keys = keys_of(kind)
    for given in _given(keys, file, environment or {}, flags or {}, problems):
        try:
            values[given.key] = checked(given.key, given.value)
            places[given.key] = given.where
        except ValueError as reason:
            problems.append(f"{given.where}: {reason}")
    settings = _settings(kind, values)
    if not problems:
        problems += contradictions(settings)
    if problems:
        raise ConfigError("\n".join(problems))
    return Loaded(settings, places)


def _settings(kind: type[S], values: Mapping[str, Any]) -> S:
    node = {key.removeprefix("node."): v for key, v in values.items() if key.startswith("node.")}
    top = {key: value for key, value in values.items() if not key.startswith("node.")}
    return kind(**top, node=node)


def _given(
    keys: tuple[str, ...],
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    problems: list[str],
) -> Iterator[Given]:
    """All values that were given, the weakest first; keys that are none go to the problems."""
    found: list[Given] = []
    if file is not None:
        found += _of_file(file)
    found += _of_environment(keys, environment)
    found += _of_flags(flags)
    for given in found:
        if given.key in keys:
            try:
                yield _parsed(given)
            except ValueError as reason:
                problems.append(f"{given.where}: {reason}")
        else:
            problems.append(f"{given.where}: {_unknown(keys, given)}")


def _unknown(keys: tuple[str, ...], given: Given) -> str:
    """Variables are named as they are written."""
    is_variable = given.where.startswith("$")
    spelt = variable_of if is_variable else str
    key = given.key.removeprefix(PREFIX).lower() if is_variable else given.key
    near = FAMILIAR.get(key) or _nearest(keys, key)
    if near is not None:
        return f"there is no {given.key!r}; did you mean {spelt(near)!r}?"
    table = "node." if key.startswith("node.") else ""
    listed = [spelt(k) for k in keys if k.startswith(table) and (table or "." not in k)]
    return f"there is no {given.key!r}; there are {', '.join(listed)}"


def _nearest(keys: tuple[str, ...], key: str) -> str | None:
    near = get_close_matches(key.replace(".", "_"), [k.replace(".", "_") for k in keys], n=1)
    return next((k for k in keys if [k.replace(".", "_")] == near), None)


def variable_of(key: str) -> str:
    """The variable of the environment that sets this key."""
    return PREFIX + key.replace(".", "_").upper()


# -- the layers -----------------------------------------------------------------------------------


def _of_file(file: Path) -> Iterator[Given]:
    size = file.stat().st_size
    if size > MAX_FILE_BYTES:
        raise ConfigError(f"{file}: {size} bytes; a configuration has at most {MAX_FILE_BYTES}")
    try:
        text = file.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as reason:
        raise ConfigError(f"{file}: this is not TOML: {reason}") from None
    lines = _lines_of_keys(text)
    for key, value in _flat(tables):
        line = lines.get(key)
        yield Given(key, value, str(file) if line is None else f"{file}:{line}")


def _flat(tables: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for key, value in tables.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{option}", inner) for option, inner in value.items())
        else:
            yield key, value


def _lines_of_keys(text: str) -> dict[str, int]:
    """The line of each key, as people write them; tomllib does not tell."""
    table, found = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            table = f"{head.group(1)}."
        elif entry := re.match(r"\s*([\w.-]+)\s*=", line):
            found.setdefault(table + entry.group(1), number)
    return found


def _of_environment(keys: tuple[str, ...], environment: Mapping[str, str]) -> Iterator[Given]:
    variables = {variable_of(key): key for key in keys}
    for variable, text in sorted(environment.items()):
        is_ours = variable.startswith(PREFIX) and variable not in OTHER_VARIABLES
        if is_ours and not KUBERNETES.fullmatch(variable):
            yield Given(variables.get(variable, variable), text, f"${variable}")


def _of_flags(flags: Mapping[str, object]) -> Iterable[Given]:
    for key, value in flags.items():
        table, _, option = key.rpartition(".")
        where = f"--option {option}" if table else f"--{key.replace('_', '-')}"
        yield Given(key, value, where)


# -- text of the environment and of flags ---------------------------------------------------------


def _parsed(given: Given) -> Given:
    """A value that was written as text, where the key wants something else."""
    kind = kind_of(given.key)
    from_file = not given.where.startswith(("$", "--"))
    if from_file or not isinstance(given.value, str) or kind == "text":
        return given
    return msgspec.structs.replace(given, value=_read(kind, given.key, given.value.strip()))


def _read(kind: str, key: str, text: str) -> object:
    if kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == "switch":
        return SWITCHES.get(text.lower(), text)
    try:
        return int(text) if kind == "whole number" else float(text)
    except ValueError:
        return text
