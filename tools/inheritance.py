"""How deep classes inherit: `make check` fails if a line of ancestors has more than four classes.

A class counts itself and every ancestor that is defined in `src/ordercast`. The classes that are
deeper than that today stand in `TOO_DEEP`. One that is not deep any more must be taken off the
list, so the list can only get shorter.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
DEEPEST = 4

TOO_DEEP: frozenset[str] = frozenset()

Bases = Mapping[str, tuple[str, ...]]
"""Classes by module and name, with the bases that are classes of the same source"""


def classes_of(source: Path) -> Bases:
    """Every class under this folder, also inside functions and other classes."""
    modules = {
        _module(path.relative_to(source)): ast.parse(path.read_text("utf-8"))
        for path in sorted(source.rglob("*.py"))
    }
    defined = {
        f"{module}.{node.name}": (module, node)
        for module, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    names = {f"{m}.{name}": meant for m, tree in modules.items() for name, meant in _imported(tree)}
    return {
        name: tuple(
            meant
            for base in map(_dotted, node.bases)
            if (meant := _meaning(f"{module}.{base}", names)) in defined
            or (meant := base) in defined
        )
        for name, (module, node) in defined.items()
    }


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a module imports, and what they stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)
        elif isinstance(node, ast.Import):
            yield from ((a.asname, a.name) for a in node.names if a.asname)


def _dotted(base: ast.expr) -> str:
    """`C`, `m.C` and `C[T]` name a class; a call does not."""
    if isinstance(base, ast.Subscript):
        return _dotted(base.value)
    if isinstance(base, ast.Attribute):
        return f"{_dotted(base.value)}.{base.attr}"
    return base.id if isinstance(base, ast.Name) else ""


def _meaning(name: str, names: Mapping[str, str]) -> str:
    """A name of a module where it is defined: it may have been imported several times."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        parts = name.split(".")
        aliases = (".".join(parts[:k]) for k in range(len(parts), 0, -1))
        alias = next((alias for alias in aliases if alias in names), "")
        name = names.get(alias, "") + name.removeprefix(alias)
    return name


def line_of(name: str, bases: Bases) -> tuple[str, ...]:
    """The class, and the longest line of its ancestors."""
    lines = (line_of(base, bases) for base in bases[name])
    return (name, *max(lines, key=len, default=()))


def complaints(
    bases: Bases, excepted: Collection[str] = TOO_DEEP, deepest: int = DEEPEST
) -> Iterator[str]:
    """What is wrong: a class that is too deep, or an exception that is none any more."""
    lines = {name: line_of(name, bases) for name in bases}
    deep = {name for name, line in lines.items() if len(line) > deepest}
    for name in sorted(deep - set(excepted)):
        classes = " < ".join(ancestor.rpartition(".")[2] for ancestor in lines[name])
        yield f"{name} is {len(lines[name])} deep, and {deepest} are allowed: {classes}"
    for name in sorted(set(excepted) - deep):
        yield f"{name} is not too deep: take it off the list of exceptions"


if __name__ == "__main__":
    wrong = list(complaints(classes_of(SOURCE)))
    print("\n".join(wrong) or f"No class is more than {DEEPEST} deep, {len(TOO_DEEP)} excepted.")
    sys.exit(bool(wrong))
