"""`make mutants`: which changes it makes, which it leaves alone, and what it says of tests."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools import mutants
from tools.mutants import ROOT, SOURCE, TESTS, drawn, main, modules, mutants_of

MODULE = '''\
"""A made-up module: 1 < 2 and not 3."""

import logging

LIMIT = 7
log = logging.getLogger(__name__)


class Counter:
    """Up to a limit."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, n: int) -> bool:
        """More, if that is allowed: True."""
        if self.count + n > LIMIT:
            log.info("%d is more than %d", n, 9)
            raise ValueError(f"{n + 5} is too much")
        self.count = self.count + n
        return self.count == LIMIT

    def invariants(self) -> None:
        assert self.count <= LIMIT

    def __repr__(self) -> str:
        return "it" if self.count > 3 else "none"


def lower(a: int, b: int) -> int:
    return min(a, b)


def note(found: list[int], quiet: bool, n: int) -> None:
    if not quiet and n in found:
        return
    found.append(n + 1)
'''

TEST = """\
from ordercast.wire.counting import Counter, lower


def test_it():
    one = Counter()
    assert not one.add(3)
    assert one.add(4)
    {more}
    while one.count < 7:
        pass
    assert lower(1, 2) == 1
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of one module and one test, which looks at half of it."""
    for name, text in {
        SOURCE / "__init__.py": "",
        SOURCE / "testing.py": "",  # pytest loads our plug-in
        SOURCE / "wire" / "__init__.py": "",
        SOURCE / "wire" / "counting.py": MODULE,
        Path("tests/wire/test_counting.py"): TEST.format(more=""),
        Path("tools/mutants.json"): '{"core/old.py": {"noticed": 1}}',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    author = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def changes(text: str) -> list[tuple[str, str]]:
    """The kind of each mutant, and the first line that it makes."""
    source = text.encode()
    shown = [(m.kind, m.shown(source).split("\n    +")) for m in mutants_of(Path("x.py"), source)]
    return [(kind, lines[1].strip() if len(lines) > 1 else "") for kind, lines in shown]


def test_every_kind_of_change_is_made() -> None:
    kinds = {kind for kind, _ in changes(MODULE)}
    assert kinds == {
        "returns at once", "branch forced", "and/or", "not dropped", "comparison", "left out",
        "off by one", "min/max", "other value",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("return a < b", {"return (a <= b)", "return (not (a < b))"}),
        ("return max(a, b)", {"return min(a, b)", "return None"}),
        ("return a and b", {"return (a or b)", "return (not (a and b))"}),
        ("return not a", {"return (a)", "return (not (not a))"}),
        ("return True", {"return False"}),
        ("a.b = b", {"pass"}),
        ("a = b", set()),
        ("a[b] += 1", {"pass", "a[b] += 2"}),
        ("a.append(b)", {"pass"}),
        ("return a if b else c", {"return a if True else c", "return a if False else c",
                                  "return None"}),
        ("return a - 1", {"return (a)", "return a - 2", "return None"}),
    ],
)  # fmt: skip
def test_these_changes_are_made(body: str, made: set[str]) -> None:
    assert {line for _, line in changes(f"def f(a, b, c):\n    {body}\n")} == made


@pytest.mark.parametrize(
    "text",
    [
        'def f():\n    """1 < 2"""\n',
        "def f(a):\n    assert a < 1\n",
        "def f(a):\n    raise ValueError(a + 1)\n",
        "def f(a):\n    log.info(a + 1)\n",
        'def f(a):\n    b = f"{a + 1}"\n',
        "class C:\n    def invariants(self):\n        return self.a < 1\n",
        "class C:\n    def check(self):\n        return self.a < 1\n",
        "class C:\n    def __repr__(self):\n        return self.a\n",
        "class C:\n    limit = 1\n",
        "class C:\n    def __init__(self):\n        self.a = {}\n",
        "LIMIT = 1 + 2\n",
    ],
)
def test_this_is_left_alone(text: str) -> None:
    assert mutants_of(Path("x.py"), text.encode()) == []


def test_every_mutant_of_the_source_is_a_program() -> None:
    for path in modules(["membership", "runtime/window.py"]):
        source = (ROOT / path).read_bytes()
        for mutant in mutants_of(path, source):
            compile(mutant.applied(source), str(path), "exec")


def test_the_tests_of_the_table_are_there() -> None:
    for room, tests in TESTS.items():
        assert (ROOT / SOURCE / room).exists(), room
        assert all((ROOT / test).exists() for test in tests), room


def test_a_seed_draws_the_same_mutants_again_and_no_file_is_left_out() -> None:
    found = [
        mutant
        for path in modules(["views"])
        for mutant in mutants_of(path, (ROOT / path).read_bytes())
    ]
    files = {mutant.path for mutant in found}
    once = drawn(found, len(files), 3)
    assert once == drawn(found, len(files), 3) != drawn(found, len(files), 4)
    assert {mutant.path for mutant in once} == files
    assert set(drawn(found, 10**6, 3)) == set(found)


def test_what_no_test_notices_is_told_and_recorded_and_the_checkout_is_not_touched(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def few(found: list[mutants.Mutant], number: int, seed: int) -> list[mutants.Mutant]:
        return [m for m in found if m.line > 30 and m.kind in ("min/max", "off by one")]

    monkeypatch.setattr(mutants, "drawn", few)
    assert main(["wire", "--record"], root=checkout) == 1
    said = capsys.readouterr().out
    assert "noticed  src/ordercast/wire/counting.py:31: min/max" in said
    assert "NOT NOTICED  src/ordercast/wire/counting.py:37: off by one" in said
    assert "-    found.append(n + 1)" in said and "+    found.append((n))" in said
    scores = json.loads((checkout / "tools" / "mutants.json").read_text())
    assert scores["core/old.py"] == {"noticed": 1}
    one = scores["wire/counting.py"]
    assert (one["noticed"], one["of"]) == (1, 3)
    assert one["missed"] == ["37: off by one"] * 2
    changed = subprocess.run(
        ["git", "status", "--short"], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert changed.stdout.split() == ["M", "tools/mutants.json"]


def test_a_test_that_does_not_end_has_noticed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def first(found: list[mutants.Mutant], number: int, seed: int) -> list[mutants.Mutant]:
        """`count` is not kept, so the test waits for ever."""
        [one] = [m for m in found if m.kind == "left out" and m.line == 20]
        return [one]

    text = TEST.replace("    assert not one.add(3)\n    assert one.add(4)\n", "    one.add(7)\n")
    (checkout / "tests/wire/test_counting.py").write_text(text.format(more=""))
    monkeypatch.setattr(mutants, "drawn", first)
    monkeypatch.setattr(mutants, "LEAST_SECONDS", 3.0)
    monkeypatch.setattr(mutants, "TIMES", 0)
    assert main(["wire"], root=checkout) == 0
    assert "1 of   1  wire/counting.py" in capsys.readouterr().out


def test_tests_that_fail_without_a_change_say_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "tests/wire/test_counting.py").write_text(TEST.format(more="assert False"))
    with pytest.raises(SystemExit, match="fail without any change"):
        main(["wire", "--number", "1"], root=checkout)
