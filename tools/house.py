"""How liveable the house is: `make house` prints what a newcomer meets in `src/ordercast`.

    rooms     files, lines; modules with one importer; knots of imports (TYPE_CHECKING counts)
    names     classes and files that bear the same name; what one name is used for
    units     depth of inheritance, methods and fields of the largest classes, branches of functions
    reach     chains of attributes: how far one object looks into others
    the way   functions and files that one message passes through (`tools.way`)

`--draw N` draws N functions at random, names without places: whoever sees only the tree of files
and the glossary guesses where each is. `--places` tells where they are.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
SMALL = 70  # lines
LONG_CHAIN = 4  # links

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """One file of the source."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text("utf-8")
        self.tree = ast.parse(self.text)
        self.name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        self.name = self.name.removesuffix(".__init__")
        self.is_package = path.name == "__init__.py"
        self.lines = self.text.count("\n")

    @cached_property
    def imports(self) -> set[str]:
        """What it imports, as written: modules, and names of modules."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
        return found

    def classes(self) -> Iterator[ast.ClassDef]:
        """All of them."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Functions and methods that are not inside others, with the class they belong to."""
        for node in self.tree.body:
            if isinstance(node, Function):
                yield "", node
            elif isinstance(node, ast.ClassDef):
                yield from ((node.name, item) for item in node.body if isinstance(item, Function))


class House:
    """All files of the source."""

    def __init__(self, source: Path = SOURCE) -> None:
        self.modules = {m.name: m for m in map(Module, sorted(source.rglob("*.py")))}

    @cached_property
    def edges(self) -> dict[str, set[str]]:
        """Which module imports which, TYPE_CHECKING counted."""
        return {
            name: {other for other in module.imports if other in self.modules} - {name}
            for name, module in self.modules.items()
        }

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """Who imports a module."""
        found: dict[str, set[str]] = defaultdict(set)
        for name, others in self.edges.items():
            for other in others:
                found[other].add(name)
        return found

    # -- rooms ------------------------------------------------------------------------------------

    def rooms(self) -> dict[str, Any]:
        """Files, lines, and how they hang together."""
        code = [m for m in self.modules.values() if not m.is_package]
        single = [m for m in code if len(self.importers.get(m.name, ())) == 1]
        lengths = sorted(m.lines for m in code)
        by_room = Counter(m.name.split(".")[1] for m in code if m.name.count("."))
        return {
            "modules": len(code),
            "lines": sum(m.lines for m in self.modules.values()),
            "median_lines": lengths[len(lengths) // 2],
            "longest": _first({m.name: m.lines for m in code}, 5),
            "modules_by_room": dict(by_room.most_common()),
            "one_importer": len(single),
            "one_importer_and_small": sum(m.lines < SMALL for m in single),
            "knots": [len(knot) for knot in self.knots() if len(knot) > 1][:5],
        }

    def knots(self) -> list[set[str]]:
        """Modules that import each other in a circle, the largest knot first. A package's own
        `__init__` counts only for what it imports."""
        index: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        found: list[set[str]] = []

        def visit(name: str) -> None:
            index[name] = low[name] = len(index)
            stack.append(name)
            for other in self.edges[name]:
                if other not in index:
                    visit(other)
                    low[name] = min(low[name], low[other])
                elif other in stack:
                    low[name] = min(low[name], index[other])
            if low[name] == index[name]:
                knot: set[str] = set()
                while name not in knot:
                    knot.add(stack.pop())
                found.append(knot)

        sys.setrecursionlimit(10_000)
        for name in self.edges:
            if name not in index:
                visit(name)
        return sorted(found, key=len, reverse=True)

    # -- names ------------------------------------------------------------------------------------

    def names(self) -> dict[str, Any]:
        """What bears the same name."""
        classes = Counter(c.name for m in self.modules.values() for c in m.classes())
        files = Counter(m.path.name for m in self.modules.values() if not m.is_package)
        kinds = self.kinds()
        return {
            "class_names_twice": sum(n > 1 for n in classes.values()),
            "most_shared_class_names": _first(classes, 8),
            "file_names_twice": sum(n > 1 for n in files.values()),
            "most_shared_file_names": _first(files, 8),
            "names_with_most_types": _first({n: len(k) for n, k in kinds.items()}, 8),
        }

    def kinds(self) -> dict[str, set[str]]:
        """Of each name that is a field or an argument: the types that it is declared with."""
        found: dict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.arg) and node.annotation is not None:
                    found[node.arg].add(ast.unparse(node.annotation))
                elif isinstance(node, ast.AnnAssign):
                    target = node.target
                    name = target.attr if isinstance(target, ast.Attribute) else None
                    name = target.id if isinstance(target, ast.Name) else name
                    if name is not None:
                        found[name].add(ast.unparse(node.annotation))
        return found

    # -- units ------------------------------------------------------------------------------------

    def units(self) -> dict[str, Any]:
        """The largest things that one must hold in mind."""
        methods: dict[str, int] = {}
        fields: dict[str, int] = {}
        branches: dict[str, int] = {}
        lengths: dict[str, int] = {}
        for module in self.modules.values():
            for node in module.classes():
                full = f"{module.name}.{node.name}"
                methods[full] = sum(isinstance(item, Function) for item in node.body)
                fields[full] = len(_fields(node))
            for owner, function in module.functions():
                full = ".".join(filter(None, (module.name, owner, function.name)))
                branches[full] = _branches(function)
                lengths[full] = (function.end_lineno or 0) - function.lineno + 1
        return {
            "most_methods": _first(methods, 6),
            "most_fields": _first(fields, 6),
            "most_branches": _first(branches, 6),
            "longest_functions": _first(lengths, 4),
        }

    def reach(self) -> dict[str, Any]:
        """How far code looks into objects: `a.b.c.d` has four links."""
        chains: Counter[str] = Counter()
        for module in self.modules.values():
            inner = {
                id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)
            }
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Attribute) and id(node) not in inner:
                    links = _links(node)
                    if links >= LONG_CHAIN:
                        chains[module.name.split(".")[1]] += 1
        return {"long_chains": sum(chains.values()), "by_room": dict(chains.most_common(6))}

    def draw(self, count: int, seed: int) -> list[tuple[str, str]]:
        """Functions at random: (what a guesser sees, where it is)."""
        every = [
            (f"{owner}.{f.name}" if owner else f.name, f, module.name)
            for module in self.modules.values()
            for owner, f in module.functions()
            if not f.name.startswith("__") and (f.end_lineno or 0) - f.lineno >= 2
        ]
        drawn = Random(seed).sample(every, count)
        return [
            (f"{f.name}: {(ast.get_docstring(f) or 'no docstring').splitlines()[0]}", where)
            for _, f, where in drawn
        ]


def _fields(node: ast.ClassDef) -> set[str]:
    """Attributes that a class assigns to itself, and those it declares."""
    found = {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    for inner in ast.walk(node):
        targets = inner.targets if isinstance(inner, ast.Assign) else []
        if isinstance(inner, ast.AnnAssign | ast.AugAssign):
            targets = [inner.target]
        for target in targets:
            for one in ast.walk(target):
                if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self":
                    found.add(one.attr)
    return found


BRANCHES = ast.If | ast.For | ast.While | ast.ExceptHandler | ast.IfExp | ast.comprehension
BRANCHES |= ast.match_case | ast.AsyncFor


def _branches(function: Function) -> int:
    """McCabe's count."""
    found = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            found += 1
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
    return found


def _links(node: ast.expr) -> int:
    links = 0
    while isinstance(node, ast.Attribute):
        links, node = links + 1, node.value
    return links if isinstance(node, ast.Name) else 0


def _first(counts: dict[str, int], most: int) -> dict[str, int]:
    ranked = sorted(counts.items(), key=lambda pair: -pair[1])[:most]
    return {name.removeprefix("ordercast."): count for name, count in ranked}


def main() -> None:
    """Print the measures as JSON, or draw functions."""
    options = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    options.add_argument("--draw", type=int, metavar="N")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--places", action="store_true")
    asked = options.parse_args()
    house = House()
    if asked.draw:
        for said, where in house.draw(asked.draw, asked.seed):
            print(f"{said}    -> {where}" if asked.places else said)
        return
    measured = {
        "rooms": house.rooms(),
        "names": house.names(),
        "units": house.units(),
        "reach": house.reach(),
    }
    print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
