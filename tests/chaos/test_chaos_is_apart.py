"""The outside judge shares no code with what it judges."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import chaos

ROOM = Path(chaos.__file__).parent
MAY_IMPORT = {"participant", "nursery", "soaker", "verdict"}  # they run nodes, or ask Spark


def imported(module: str) -> set[str]:
    """First words of what a module imports, and of the modules of chaos that it imports."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        tree = ast.parse((ROOM / f"{waiting.pop()}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                first, _, rest = name.partition(".")
                if first == "chaos" and rest and rest not in found:
                    found.add(rest)
                    waiting.append(rest)
                found.add(first)
    return found


@pytest.mark.parametrize("module", ["judge", "history", "causality", "promises", "recovery"])
def test_a_judge_imports_nothing_of_ordercast(module: str) -> None:
    found = imported(module)
    assert "ordercast" not in found
    assert not found & MAY_IMPORT


def test_only_those_that_run_nodes_import_ordercast() -> None:
    direct = {
        path.stem
        for path in ROOM.glob("*.py")
        if any(
            isinstance(node, ast.ImportFrom)
            and (node.module or "").partition(".")[0] == "ordercast"
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
        )
    }
    assert direct <= MAY_IMPORT
