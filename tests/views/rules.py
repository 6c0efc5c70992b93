"""The rules that `invariants()` of a node can report, as they stand in the code.

A rule is an assertion in a method named `invariants`, or in a method or function that such a one
calls for nothing but its assertions.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import ordercast

ROOMS = ("views", "membership", "protocols/sequencing", "process")
SOURCE = Path(ordercast.__file__).parent


class Method(NamedTuple):
    """One that looks at rules, or may."""

    module: str
    owner: str  # its class; the module, of a function
    name: str
    tree: ast.FunctionDef

    @property
    def home(self) -> Any:
        """Where it is looked up when it is called."""
        module = sys.modules[self.module]
        return getattr(module, self.owner, module)

    def rules(self) -> list[str]:
        """Each assertion: where it is, and what it says."""
        said = [_said(node) for node in ast.walk(self.tree) if isinstance(node, ast.Assert)]
        again: Counter[str] = Counter()
        found = []
        for text in said:
            again[text] += 1
            times = f" ({again[text]})" if again[text] > 1 else ""
            found.append(f"{self.owner}: {text}{times}")
        return found

    def noting(self, note: Callable[[str], None]) -> Callable[..., None]:
        """The same, but a broken rule is noted, and the next one looked at. What follows may need
        what the broken rule says, and is left out if it fails."""
        [tree] = ast.parse(ast.unparse(self.tree)).body
        asserts = (node for node in ast.walk(tree) if isinstance(node, ast.Assert))
        for node, rule in zip(asserts, self.rules(), strict=True):
            node.msg = ast.Constant(rule)
        tree = _Notes().visit(tree)
        broken: list[str] = []
        space = {**vars(sys.modules[self.module]), "_note": broken.append}
        code = compile(ast.fix_missing_locations(ast.Module([tree], [])), self.module, "exec")
        exec(code, space)
        look = space[self.name]

        @functools.wraps(look)
        def looked(*arguments: object) -> None:
            before = len(broken)
            try:
                look(*arguments)
            except Exception:
                if len(broken) == before:
                    raise
            for rule in broken:
                note(rule)

        return looked


def _said(node: ast.Assert) -> str:
    assert isinstance(node.msg, ast.Constant), f"line {node.lineno}: a rule says what it is"
    return str(node.msg.value)


class _Notes(ast.NodeTransformer):
    """assert test, rule   ->   if not test: _note(rule)"""

    def visit_Assert(self, node: ast.Assert) -> ast.If:
        assert node.msg is not None
        note = ast.Expr(ast.Call(ast.Name("_note", ast.Load()), [node.msg], []))
        return ast.If(ast.UnaryOp(ast.Not(), node.test), [note], [])


@cache
def methods() -> list[Method]:
    """All that look at rules."""
    every = [method for room in ROOMS for method in _methods_in(SOURCE / room)]
    looked: set[str] = {"invariants"}
    while True:
        found = [method for method in every if method.name in looked]
        more = {name for method in found for name in _called_for_nothing(method.tree)} - looked
        if not more:
            return found
        looked |= more


def _methods_in(room: Path) -> Iterator[Method]:
    for path in sorted(room.glob("*.py")):
        module = ".".join(("ordercast", *path.relative_to(SOURCE).with_suffix("").parts))
        for owner in ast.parse(path.read_text()).body:
            if isinstance(owner, ast.FunctionDef):
                yield Method(module, path.stem, owner.name, owner)
            for tree in owner.body if isinstance(owner, ast.ClassDef) else ():
                if isinstance(tree, ast.FunctionDef):
                    yield Method(module, owner.name, tree.name, tree)


def _called_for_nothing(tree: ast.FunctionDef) -> Iterator[str]:
    """Methods and functions whose answer is not used."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(attr=name) | ast.Name(id=name))):
                yield name


def all_rules() -> list[str]:
    """What can be reported."""
    return [rule for method in methods() for rule in method.rules()]


@contextmanager
def noted() -> Iterator[set[str]]:
    """Inside of it, `invariants()` goes on after a broken rule; all broken ones are in the set."""
    broken: set[str] = set()
    with ExitStack() as stack:
        for method in reversed(methods()):  # a function stands below those that call it
            stack.enter_context(patch.object(method.home, method.name, method.noting(broken.add)))
        yield broken
