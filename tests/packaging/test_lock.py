"""The lock: exact versions of everything the project needs, and no word on where they come from."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LINES = [
    line
    for line in (ROOT / "requirements.lock").read_text().splitlines()
    if not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins() -> dict[str, Version]:
    return {
        canonicalize_name(name): Version(version)
        for name, version in (line.split("==") for line in LINES)
    }


def needed_by(requirement: Requirement) -> list[Requirement]:
    extras = requirement.extras or {""}
    return [
        needed
        for needed in map(Requirement, requires(requirement.name) or ())
        if needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in extras)
    ]


def test_every_line_is_a_name_and_an_exact_version():
    assert [line for line in LINES if not re.fullmatch(r"[\w.-]+==[\w.+!]+", line)] == []


def test_everything_the_project_needs_is_locked_at_a_version_it_accepts():
    extras = PROJECT["optional-dependencies"]
    todo = [*PROJECT["dependencies"], *extras["pipeline"], *extras["dev"]]
    waiting = [Requirement(text) for text in todo]
    locked, seen = pins(), set[str]()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        pin = locked.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement} is not in the lock"
        assert pin in requirement.specifier, f"{requirement} is locked at {pin}"
        waiting += needed_by(requirement)
