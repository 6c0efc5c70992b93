"""The glossary is true: every name of the code in it exists, and its index names every term."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name
from typing import get_type_hints

import pytest
import typer

from ordercast.cli.app import app
from ordercast.runtime.keywords import JoinKeywords, NodeKeywords

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ordercast"
PAGE = (ROOT / "docs" / "GLOSSARY.md").read_text()
TEXT, _, INDEX = PAGE.partition("\n## Index\n")
SUBJECTS = {
    title: re.findall(r"^\*\*([^*]+)\.\*\*", body, re.MULTILINE)
    for title, body in re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", TEXT, re.MULTILINE)
}
QUOTED = re.findall(r"`([^`]+)`", TEXT.replace("\n", " "))
ROOMS = {path.stem for path in SOURCE.iterdir() if not path.name.startswith("_")}
NAMES = sorted({q for q in QUOTED if re.fullmatch(r"[\w.]+\.[\w.]+", q)})
PLAIN = {"ok", "violated", "inconclusive", "n/a", "multicast", "copies", "sequencing"}


def anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_code_exists(name: str) -> None:
    """A module, something in it, or a field of that."""
    assert name.partition(".")[0] in ROOMS, "say in which package it is"
    try:
        resolve_name(f"ordercast.{name}")
    except AttributeError:
        owner, _, field = f"ordercast.{name}".rpartition(".")
        assert field in getattr(resolve_name(owner), "__annotations__", {})


def test_every_other_quoted_word_is_an_option_a_command_or_told_here() -> None:
    options = get_type_hints(NodeKeywords).keys() | get_type_hints(JoinKeywords).keys()
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for quoted in {*QUOTED} - {*NAMES} - PLAIN:
        words = quoted.split()
        if words[0] == "ordercast":
            assert words[1] in commands, quoted
        elif not re.search(r"[#:/-]", quoted):
            assert quoted in options, quoted


def test_terms_stand_in_order_and_once() -> None:
    terms = [term for listed in SUBJECTS.values() for term in listed]
    assert len(terms) == len({*terms})
    for title, listed in SUBJECTS.items():
        assert listed == sorted(listed, key=str.lower), title


def test_the_index_leads_to_every_term() -> None:
    there = re.findall(r"\[([^\]]+)\]\(#([^)]+)\)", INDEX)
    wanted = [(term, anchor(title)) for title, listed in SUBJECTS.items() for term in listed]
    assert there == sorted(wanted, key=lambda pair: pair[0].lower())


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/ARCHITECTURE.md"])
def test_who_looks_for_words_finds_the_glossary(page: str) -> None:
    assert "GLOSSARY.md)" in (ROOT / page).read_text()


@pytest.mark.parametrize("name", ["views.headers.NoSuchRow", "views.headers.Row.no_such_field"])
def test_a_name_that_does_not_exist_is_noticed(name: str) -> None:
    with pytest.raises((AttributeError, AssertionError)):
        test_every_name_of_the_code_exists(name)
