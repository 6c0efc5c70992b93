"""The pages for those who work on the code are true: paths, targets and commands in them exist."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

from ordercast import __version__
from ordercast.cli.app import app

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ordercast"
MAKEFILE = (ROOT / "Makefile").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "docs" / "RELEASING.md",
    *sorted((ROOT / ".github").rglob("*.md")),
]

TARGETS = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))
A_PATH = re.compile(r"[\w.-]*/[\w./-]*|[\w-]+\.(?:py|md|toml|json|lock)|\.[\w-]+\.yaml")
NOT_HERE = {"dist/", "utils.py"}  # what a command writes; a name that no module should have
NO_PATH = re.compile(r"v<N>|/path/to")


def quoted(text: str) -> list[str]:
    """What stands between backticks in one line, and not in a block."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def paths(text: str) -> set[str]:
    return {q for q in quoted(text) if A_PATH.fullmatch(q) and not NO_PATH.search(q)} - NOT_HERE


def is_there(path: str) -> bool:
    if path.startswith(".venv/bin/"):
        return (Path(sys.executable).parent / Path(path).name).exists()
    return any((folder / path).exists() for folder in (ROOT, SOURCE))


def folders(root: Path) -> set[str]:
    """Folders with code in them, which are rooms of the house."""
    return {
        folder.name
        for folder in root.iterdir()
        if not folder.name.startswith(".") and any(folder.rglob("*.py"))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_is_named_exists(page: Path) -> None:
    assert sorted(path for path in paths(page.read_text()) if not is_there(path)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    named = {words.split()[1] for words in quoted(page.read_text()) if words.startswith("make ")}
    assert named <= TARGETS


def test_contributing_names_every_target_but_the_plainest() -> None:
    named = set(re.findall(r"`make ([a-z-]+)", CONTRIBUTING))
    assert TARGETS - named == {"help", "clean"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_named_exists(page: Path) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for words in map(str.split, quoted(page.read_text())):
        if words[:2] == ["python", "-m"]:
            assert find_spec(words[2]), words
        elif words[0].startswith(".venv/bin/"):
            assert is_there(words[0]), words
        elif words[0] == "ordercast" and len(words) > 1:
            assert words[1] in {*commands, "--version"}, words


def test_every_folder_with_code_is_named_in_contributing() -> None:
    named = {q.rstrip("/") for q in quoted(CONTRIBUTING)}
    assert sorted(folders(SOURCE) - named) == []
    assert sorted(folders(ROOT) - named - {"src"}) == []


def test_the_first_table_of_rooms_names_only_rooms_that_exist() -> None:
    _, _, table = CONTRIBUTING.partition("| rooms | what they hold |\n")
    rooms = {
        room for row in table.split("\n\n")[0].split("\n")[1:] for room in quoted(row.split("|")[1])
    }
    assert rooms == folders(SOURCE)


def test_the_hooks_for_pre_commit_are_the_commands_of_make_check() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    [recipe] = re.findall(r"^check:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    assert re.findall(r"^ +entry: (.*)$", hooks, re.MULTILINE) == commands
    assert re.findall(r"^ *- repo: (.*)$", hooks, re.MULTILINE) == ["local"]


def test_the_changelog_begins_with_what_is_not_released_and_falls() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    first, *released = re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    numbers = [tuple(map(int, version.split("."))) for version in released]
    assert first == "Unreleased"
    assert numbers == sorted(set(numbers), reverse=True)
    assert released[:1] in ([], [__version__])


def test_a_bug_report_asks_for_what_one_needs_to_see_it_again() -> None:
    asked = (ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.md").read_text()
    for thing in ("ordercast --version", "order=", "options", "ordercast doctor", "trace="):
        assert thing in asked
