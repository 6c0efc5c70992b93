"""A plan: a TOML file that says which runs a sweep has, and what is kept of them.

title = "Delay against size"
costs = "costs"                 # calibrations; beside the plan
[grid]                          # all combinations; [[grid]] twice: those of either
protocol = ["cbcast", "agreed"]
members = [4, 8, 16]
seeds = 5
[quick]                         # instead of these, in the quick form
seeds = 1
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from ordercast.errors import ConfigError
from ordercast.experiments.arrange import arranged
from ordercast.experiments.coordinates import GIVEN_OTHERWISE, KEYS, Coordinates, checked
from ordercast.experiments.costs import FREE, Costs, read_cost_models

MAX_FILE_BYTES = 1024 * 1024
MOST_RUNS = 1_000_000
TABLES = ("common", "grid", "quick")

STANDS_FOR = {other: one for one, other in GIVEN_OTHERWISE.items()}
Keep = Literal["all", "none", "failed"]
Trace = Literal["application", "protocol"]
Values = dict[str, list[Any]]  # of each key, all that were given


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all runs of a plan."""

    title: str = ""  # title of the sweep, for people
    keep: Keep = "none"  # traces to write: "all", "none", or those of "failed" runs
    trace: Trace = "protocol"  # "application": faster, but no packets, headers, waiting times
    needless: bool = False  # measure how much of the waiting was needless; takes time
    false_order: bool = False  # count what two layers order by accident; for few messages
    costs: str = FREE  # a calibration, or a folder of them by protocol; "free": work takes no time


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run."""

    name: str  # of the file
    settings: Settings
    costs: Costs
    runs: tuple[Coordinates, ...]  # sorted, each once


def read_plan(path: str | Path, *, quick: bool = False) -> Plan:
    """The plan in this file; `ConfigError` names all that is wrong with it.

    With `quick` the values of its table `quick` take the place of those in the grid.
    """
    path = Path(path)
    tables = _tables(path)
    problems: list[str] = []
    settings = _settings(tables, problems)
    runs = _runs(tables, problems, quick=quick)
    if not problems:
        problems += _contradictions(runs)
    if problems:
        raise ConfigError("\n".join(f"{path}: {problem}" for problem in problems))
    costs = read_cost_models(path.parent, settings.costs, {run.protocol for run in runs})
    return Plan(name=path.stem, settings=settings, costs=costs, runs=runs)


def _tables(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: {size} bytes; a plan has at most {MAX_FILE_BYTES}")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as reason:
        raise ConfigError(f"{path}: this is not TOML: {reason}") from None


# -- settings -------------------------------------------------------------------------------------


def _settings(tables: Mapping[str, Any], problems: list[str]) -> Settings:
    keys = Settings.__struct_fields__
    given: dict[str, Any] = {}
    for key, value in tables.items():
        if key in TABLES:
            continue
        if key not in keys:
            where = " in [grid] or [common]" if key in KEYS else ""
            problems.append(_unknown(key, (*keys, *TABLES), where))
        elif says := _wrong_setting(key, value):
            problems.append(f"{key} = {value!r} is wrong; write {says}")
        else:
            given[key] = value
    return Settings(**given)


def _wrong_setting(key: str, value: Any) -> str:
    """What would be right, if this is wrong."""
    choices = get_args({"keep": Keep, "trace": Trace}.get(key))
    if choices:
        return "" if value in choices else " or ".join(map(repr, choices))
    if key in ("needless", "false_order"):
        return "" if isinstance(value, bool) else "true or false"
    return "" if isinstance(value, str) else "text in quotes"


def _unknown(key: str, keys: tuple[str, ...], where: str = "") -> str:
    if where:
        return f"there is no {key!r} here; it belongs{where}"
    near = get_close_matches(key, keys, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(keys)}"
    return f"there is no {key!r}; {hint}"


# -- the grid -------------------------------------------------------------------------------------


def _runs(
    tables: Mapping[str, Any], problems: list[str], *, quick: bool
) -> tuple[Coordinates, ...]:
    common = _values("[common]", tables.get("common", {}), problems)
    instead = _values("[quick]", tables.get("quick", {}), problems)
    grids = tables.get("grid", [])
    grids = grids if isinstance(grids, list) else [grids]
    if not grids:
        problems.append("no [grid]: write one with the protocols to run, as docs/EXPERIMENTS.md")
    found: set[Coordinates] = set()
    count = 0
    for number, grid in enumerate(grids, 1):
        where = "[grid]" if len(grids) == 1 else f"[[grid]] number {number}"
        values = _over(common, _values(where, grid, problems))
        if quick:
            values = _over(values, {k: v for k, v in instead.items() if _is_given(k, values)})
        if not problems and "protocol" not in values:
            problems.append(f"{where} names no protocol")
        count += _count(values)
        if count > MOST_RUNS:
            problems.append(f"{count:,} runs; a plan has at most {MOST_RUNS:,}")
        if not problems:
            found.update(_expanded(where, values, problems))
    return tuple(sorted(found, key=in_order))


def in_order(run: Coordinates) -> tuple[Any, ...]:
    """How the runs of a table are sorted: by their coordinates."""
    options = tuple((name, str(type(value)), value) for name, value in run.options)
    plain = (key for key in Coordinates.__struct_fields__ if key not in ("options", "seed"))
    return (*(getattr(run, key) for key in plain), options, run.seed)


def _is_given(key: str, values: Values) -> bool:
    """Whether the grid says anything of it; the quick form adds no axis."""
    return bool({key, GIVEN_OTHERWISE.get(key), STANDS_FOR.get(key)} & values.keys())


def _over(values: Values, others: Values) -> Values:
    """The others, and what they say nothing of."""
    said = {key for one in others for key in (one, GIVEN_OTHERWISE.get(one), STANDS_FOR.get(one))}
    return {key: several for key, several in values.items() if key not in said} | others


def _values(where: str, table: Any, problems: list[str]) -> Values:
    """All values of each key, checked."""
    if not isinstance(table, dict):
        problems.append(f"{where} = {table!r} is wrong; write a table")
        return {}
    found: Values = {}
    for key, given in _flat(table):
        if key not in KEYS:
            problems.append(f"{where}: {_unknown(key, KEYS)}")
            continue
        found[key] = []
        for value in given if isinstance(given, list) else [given]:
            try:
                found[key].append(checked(key, value))
            except ValueError as reason:
                problems.append(f"{where}: {reason}")
        if given == []:
            problems.append(f"{where}: {key} = [] is wrong; write at least one value")
    for one, other in GIVEN_OTHERWISE.items():
        if one in found and other in found:
            problems.append(f"{where}: {other} and {one} say the same; write one of them")
    return found


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key == "options" and isinstance(value, dict):
            yield from ((f"options.{option}", inner) for option, inner in value.items())
        else:
            yield key, value


def _count(values: Values) -> int:
    count = 1
    for key, several in values.items():
        count *= max(several, default=1) if key == "seeds" else len(several)
    return count


def _expanded(where: str, values: Values, problems: list[str]) -> Iterator[Coordinates]:
    """All combinations."""
    values = dict(values)
    if "seeds" in values:
        values["seed"] = list(range(max(values.pop("seeds"))))
    refused: set[str] = set()
    for combination in product(*values.values()):
        try:
            yield _coordinates(dict(zip(values, combination, strict=True)))
        except ValueError as reason:
            refused.add(f"{where}: {reason}")
    problems += sorted(refused)


def _coordinates(given: dict[str, Any]) -> Coordinates:
    """With the size of groups as a number."""
    options = sorted(
        (key.removeprefix("options."), value)
        for key, value in given.items()
        if key.startswith("options.")
    )
    plain = {key: value for key, value in given.items() if not key.startswith("options.")}
    overlap = plain.pop("overlap", None)
    run = Coordinates(**plain, options=tuple(options))
    size = run.group_size or (run.members if run.groups == 1 else -(-2 * run.members // run.groups))
    if overlap is not None:
        size = round(overlap * run.members / run.groups)
        if not 1 <= size <= run.members:
            raise ConfigError(
                f"overlap = {overlap:g} with groups = {run.groups} and members = {run.members} "
                f"makes groups of {size}; a group has 1 to {run.members} members"
            )
    elif run.group_size > run.members:
        raise ConfigError(
            f"group_size = {run.group_size} and members = {run.members}: a group has at most all"
        )
    return msgspec.structs.replace(run, group_size=min(size, run.members))


def _contradictions(runs: tuple[Coordinates, ...]) -> list[str]:
    """What the simulator refuses, each once."""
    found: dict[str, None] = {}
    for run in {msgspec.structs.replace(run, seed=0): None for run in runs}:
        try:
            arranged(run)
        except ValueError as reason:
            found.setdefault(f"{run.protocol}: {reason}")
    return list(found)
