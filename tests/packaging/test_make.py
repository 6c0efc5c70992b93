"""`make`: which Python its environment has, and what the short run of the tests is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def interpreter(path: Path, version: str) -> None:
    """Something that answers as a Python of this version would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose `.venv` is ready, and has Python 3.11."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
        os.utime(tmp_path / name, (1, 1))
    interpreter(tmp_path / ".venv" / "bin" / "python", "3.11")
    (tmp_path / ".venv" / ".ready").touch()
    return tmp_path


def would_run(checkout: Path, *words: str, **environment: str) -> str:
    """What `make` would do, without doing it."""
    known = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        ["make", "--dry-run", *words],
        cwd=checkout, env={**known, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_python_that_nobody_named_leaves_the_environment_as_it_is(checkout: Path) -> None:
    assert "-m venv" not in would_run(checkout, "test")


def test_a_python_of_the_same_version_leaves_the_environment_as_it_is(checkout: Path) -> None:
    interpreter(checkout / "named", "3.11")
    assert "-m venv" not in would_run(checkout, "test", "PYTHON=./named")


def test_a_python_of_another_version_gets_an_environment_of_its_own(checkout: Path) -> None:
    interpreter(checkout / "named", "3.13")
    for done in (
        would_run(checkout, "test", "PYTHON=./named"),
        would_run(checkout, "test", PYTHON="./named"),
    ):
        assert "./named -m venv --clear .venv" in done
        assert "another version of Python than ./named" in done


def test_two_environments_stand_side_by_side(checkout: Path) -> None:
    interpreter(checkout / "named", "3.13")
    done = would_run(checkout, "test", "PYTHON=./named", "VENV=.venv-3.13")
    assert "./named -m venv --clear .venv-3.13" in done
    assert ".venv-3.13/bin/python -m pytest" in done


def test_the_short_run_of_the_tests_names_files_that_exist(checkout: Path) -> None:
    done = would_run(checkout, "test-quick")
    named = re.findall(r"(?:--ignore=)?(tests/\S+)", done)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_help_lists_every_target_that_says_what_it_does(checkout: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    described = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    helped = subprocess.run(
        ["make", "help"], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert re.findall(r"^make ([a-z-]+)\t", helped.stdout, re.MULTILINE) == described
