"""docs/FOREIGN.md and the pages of the examples are true: what they promise is what is read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ordercast.errors import TraceError
from ordercast.trace.mapping import read_mapping
from ordercast.trace.mapping.reading import mapped_events
from ordercast.trace.oracle import judge

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "FOREIGN.md").read_text()
EXAMPLES = sorted((ROOT / "examples" / "foreign").glob("*/README.md"))
LINKED = [*EXAMPLES, ROOT / "examples" / "foreign" / "README.md"]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def promises(page: str) -> list[tuple[list[str], list[str]]]:
    """The commands of a page, each with the lines that it is said to print."""
    commands = [shlex.split(command) for command in blocks(page, "sh")]
    told = [block.strip().splitlines() for block in blocks(page, "text")]
    return list(zip(commands, told, strict=True))


def witnesses(lines: list[str]) -> list[tuple[str, str]]:
    """Each witness with its property, whose name ends the heading above: `... (fifo.group):`."""
    found: list[tuple[str, str]] = []
    name = ""
    for line in lines:
        if heading := re.fullmatch(r"\S.* \(([\w.]+)\):", line):
            name = heading[1]
        else:
            assert name and line.startswith("  "), line
            found.append((name, line))
    assert bool(found) == bool(lines)
    return found


def names_in(sentence: str) -> set[str]:
    """The processes and messages of a sentence: the words with a figure in them."""
    return {name for name in re.findall(r"[\w#-]*\d[\w#-]*", sentence) if len(name) > 1}


def test_there_is_a_page_for_every_example() -> None:
    assert len(EXAMPLES) == len(list((ROOT / "examples" / "foreign").glob("*/mapping.toml"))) == 5


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.parent.name)
def test_an_example_is_read_and_judged_as_its_page_says(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    for command, (rows, *broken) in promises(page.read_text()):
        assert command[:3] == ["ordercast", "verify", "--map"]
        said: list[str] = []
        verdicts = judge(mapped_events(command[4], read_mapping(command[3]), said.append))
        assert said == [rows]
        assert broken or {"ok", "n/a"} == {one.verdict for one in verdicts.values()}
        for name, sentence in witnesses(broken):
            known = [names_in(one.sentence) for one in verdicts[name].violations]
            assert any(names <= names_in(sentence) for names in known), sentence


def test_the_first_example_of_the_page_is_read_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name, log in zip("ab", blocks(PAGE, "jsonl"), strict=True):
        (tmp_path / "logs" / f"{name}.jsonl").write_text(log)
    (tmp_path / "mapping.toml").write_text(blocks(PAGE, "toml")[0])
    said: list[str] = []
    mapping = read_mapping(tmp_path / "mapping.toml")
    verdicts = judge(mapped_events(tmp_path / "logs", mapping, said.append))
    rows, *broken = blocks(PAGE, "text")[0].strip().splitlines()
    assert said == [rows]
    [(name, _)] = witnesses(broken)
    assert verdicts[name].verdict == "violated"


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.parent.name)
def test_every_link_of_the_examples_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"event": "RETRY"}, "'RETRY' is not in [kinds]; say there which kind it is, or"),
        ({"msg_id": None}, "missing; a row of kind 'send' needs it as"),
        ({"ts": 17}, "must be an ISO timestamp, not 17; for a number say its unit"),
    ],
)
def test_a_refusal_of_the_page_says_what_the_page_says(
    tmp_path: Path, row: dict[str, object], says: str
) -> None:
    import msgspec

    first = msgspec.json.decode(blocks(PAGE, "jsonl")[0].splitlines()[0])
    (tmp_path / "a.jsonl").write_bytes(msgspec.json.encode({**first, **row}))
    (tmp_path / "mapping.toml").write_text(blocks(PAGE, "toml")[0])
    with pytest.raises(TraceError) as refused:
        mapped_events(tmp_path / "a.jsonl", read_mapping(tmp_path / "mapping.toml"))
    assert says in refused.value.reason
    assert says in PAGE
