"""Do the tests bite? Small wrong changes, one at a time, each of which some test should notice.

    make mutants                                  some mutants of every module of the table below
    make mutants ARGS="views --number 20"         of the modules whose path begins so
    make mutants ARGS="--seed 7 --record"         others; the score goes to tools/mutants.json

A mutant is one change to one expression or statement: a comparison flipped, a number one too high,
`and` for `or`, a `not` dropped, a statement left out, a `return` that says something else, a branch
forced, min for max, a function that returns at once. What a checker asserts, what is logged, and
texts for people are left alone. Mutants are drawn by a seed, and tried on a copy of the checkout in
a temporary folder. Tests that do not end in time have noticed. What nobody noticed is printed: it
is either the same program in other words, or a test is missing.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/ordercast")
SCORES = Path("tools/mutants.json")
NUMBER = 40
LEAST_SECONDS = 60.0  # tests have this time at least ...
TIMES = 4  # ... and so many times what they take without a mutant

TESTS: Mapping[str, tuple[str, ...]] = {
    "core": ("tests/core", "tests/machinery", "tests/protocols"),
    "machinery": ("tests/machinery", "tests/protocols"),
    "membership": ("tests/agreement", "tests/membership"),
    "placement": ("tests/membership",),
    "process": ("tests/process", "tests/views"),
    "protocols": ("tests/protocols",),
    "protocols/sequencing": ("tests/protocols", "tests/process", "tests/views"),
    "reliability": ("tests/reliability",),
    "views": ("tests/views", "tests/process"),
    "wire": ("tests/wire",),
    "trace": ("tests/trace",),
    "transport": ("tests/transport",),
    "runtime/window.py": ("tests/runtime/test_runtime_flow.py",
                          "tests/runtime/test_runtime_pace.py"),
    "runtime/engine.py": ("tests/runtime/test_runtime_engine.py", "tests/runtime/test_flood.py"),
    "runtime/cluster_membership.py": ("tests/runtime/test_sending_at_the_end.py",
                            "tests/runtime/test_leaving_together.py"),
    "runtime/sending.py": ("tests/runtime/test_runtime_messaging.py",
                           "tests/runtime/test_sending_at_the_end.py",
                           "tests/runtime/test_runtime_flow.py"),
    "runtime/hold_back_quota.py": ("tests/runtime/test_hold_back_quota.py",),
    "runtime/control_table.py": ("tests/runtime/test_control_table.py",),
    "cli/exits.py": ("tests/cli/test_exits.py",),
    "cli/conversation.py": ("tests/cli/test_chat_input.py", "tests/cli/test_chat_command.py"),
    "cli/doctor.py": ("tests/cli/test_doctor.py",),
    "cli/why.py": ("tests/cli/test_why_command.py",),
}  # fmt: skip
"""Which tests should notice a change of a module; the longest path that fits counts"""

LEFT_ALONE = {"invariants", "check", "__repr__", "__str__", "__init_subclass__"}
LOGGERS = {"log", "logger", "logging", "progress", "console", "warnings"}
FLIPPED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change: these bytes of the file become that text."""

    path: Path  # below the root
    line: int
    kind: str
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def shown(self, source: bytes) -> str:
        """The lines that differ."""
        before, after = source.decode(), self.applied(source).decode()
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        return "\n".join(f"    {line}" for line in list(lines)[3:])


# -- mutants ---------------------------------------------------------------------------------------


def mutants_of(path: Path, source: bytes) -> list[Mutant]:
    """All of one file, in its order."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, kind, text in _changes(tree):
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        found.append(Mutant(path, node.lineno, kind, start, end, text))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.text))


Change = tuple[ast.expr | ast.stmt, str, str]
"""What is changed, how, and into what"""


def _changes(tree: ast.Module) -> Iterator[Change]:
    for node in _functions(tree):
        yield from _of_function(node)
        for inner in _inside(node):
            yield from _of_node(inner, node.name)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those that do something, also inside classes and other functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name not in LEFT_ALONE and not _is_stub(node):
                yield node
                yield from _functions(node)
        else:
            yield from _functions(node)


def _body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return all(isinstance(one, ast.Pass) or _is_text(one) for one in _body(node))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """What a function does: no types, no assertions, no words for people, no inner functions."""
    body = node.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
    for child in ast.iter_child_nodes(node) if body is None else body:
        if not _is_left_alone(node, child):
            yield child
            yield from _inside(child)


def _is_left_alone(parent: ast.AST, node: ast.AST) -> bool:
    if isinstance(parent, ast.AnnAssign) and node is parent.annotation:
        return True
    words = ast.Assert | ast.Raise | ast.JoinedStr | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, words | ast.ClassDef) or _is_text(node) or _is_logging(node)


def _is_logging(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    return call.func.attr == "note" or (isinstance(owner, ast.Name) and owner.id in LOGGERS)


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Change]:
    body = _body(node)
    says_nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
    if says_nothing and len(body) > 1 and node.name != "__init__":
        yield body[0], "returns at once", "return"


def _of_node(node: ast.AST, function: str) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in FLIPPED:
            changed = copy.copy(node)
            changed.ops = [FLIPPED[type(op)]()]
            yield node, "comparison", _unparsed(changed)
        case ast.BoolOp(op=op):
            changed_op = copy.copy(node)
            changed_op.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node, "and/or", _unparsed(changed_op)
        case ast.UnaryOp(op=ast.Not()):
            yield node, "not dropped", _unparsed(node.operand)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield node, "off by one", str(value + 1)
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            yield node, "off by one", _unparsed(node.left)
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            yield node.func, "min/max", "max" if name == "min" else "min"
        case ast.If() | ast.IfExp() | ast.While():
            yield from _forced(node)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield from _other_value(value)
        case ast.Return(value=ast.Constant(value=bool(said))):
            yield node, "other value", f"return {not said}"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            yield node, "left out", "pass"
        case ast.Expr(value=ast.Await(value=ast.Call())):
            yield node, "left out", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) if function != "__init__":
            yield node, "left out", "pass"


def _forced(node: ast.If | ast.IfExp | ast.While) -> Iterator[Change]:
    if not isinstance(node, ast.While):
        yield node.test, "branch forced", "True"
    yield node.test, "branch forced", "False"


def _other_value(value: ast.expr) -> Iterator[Change]:
    is_truth = isinstance(value, ast.Compare | ast.BoolOp) or (
        isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    )
    yield value, "other value", f"(not {_unparsed(value)})" if is_truth else "None"


def _unparsed(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


# -- the table -------------------------------------------------------------------------------------


def tests_of(path: Path) -> tuple[str, ...]:
    """Those that should notice a change of this module; none if it is not in the table."""
    name = path.relative_to(SOURCE).as_posix()
    fitting = [room for room in TESTS if name == room or name.startswith(f"{room}/")]
    return TESTS[max(fitting, key=len)] if fitting else ()


def modules(chosen: Sequence[str], root: Path = ROOT) -> list[Path]:
    """The modules of the table whose path below the source begins with one of these."""
    paths = [path.relative_to(root) for path in sorted((root / SOURCE).rglob("*.py"))]
    return [
        path
        for path in paths
        if tests_of(path)
        and (not chosen or path.relative_to(SOURCE).as_posix().startswith(tuple(chosen)))
    ]


def drawn(found: Sequence[Mutant], number: int, seed: int) -> list[Mutant]:
    """So many, each file as likely as the next: a long one has no more of them than a short one."""
    by_file: dict[Path, list[Mutant]] = {}
    for mutant in found:
        by_file.setdefault(mutant.path, []).append(mutant)
    rng = random.Random(seed)
    for mutants in by_file.values():
        rng.shuffle(mutants)
    chosen: list[Mutant] = []
    while by_file and len(chosen) < number:
        for path in rng.sample(sorted(by_file), len(by_file)):
            chosen.append(by_file[path].pop())
            if not by_file[path]:
                del by_file[path]
    return sorted(chosen[:number], key=lambda mutant: (mutant.path, mutant.start))


# -- running ---------------------------------------------------------------------------------------


class Copy:
    """The checkout in a temporary folder, in which tests run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder
        self._limits: dict[tuple[str, ...], float] = {}  # seconds that tests may take
        for name in _files(root):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)

    def notices(self, mutant: Mutant, tests: tuple[str, ...]) -> bool:
        """Do the tests fail, or not end, with this change?"""
        limit = self._limit(tests)
        before = (self.root / mutant.path).read_bytes()
        try:
            self._write(mutant.path, mutant.applied(before))
            return self._passed(tests, limit) is not True
        finally:
            self._write(mutant.path, before)

    def _limit(self, tests: tuple[str, ...]) -> float:
        if tests not in self._limits:
            began = time.monotonic()
            if not self._passed(tests, None):
                raise SystemExit(f"these tests fail without any change: {' '.join(tests)}")
            self._limits[tests] = max(LEAST_SECONDS, TIMES * (time.monotonic() - began))
        return self._limits[tests]

    def _write(self, path: Path, text: bytes) -> None:
        (self.root / path).write_bytes(text)
        # Python knows a change by second and size, and both may be the same.
        Path(cache_from_source(str(self.root / path))).unlink(missing_ok=True)

    def _passed(self, tests: tuple[str, ...], limit: float | None) -> bool | None:
        """None: they did not end."""
        paths = (self.root / "src", self.root, self.root / "tests")
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return run.wait(limit) == 0
        except subprocess.TimeoutExpired:
            return None
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)  # the tests, and what they have started
                run.wait()


def _files(root: Path) -> list[str]:
    """What git knows, or would add."""
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    return [name for name in listed.split("\0") if name]


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


def score(results: Iterable[tuple[Mutant, bool]]) -> dict[str, tuple[int, int]]:
    """By module: how many were noticed, of how many."""
    found: dict[str, tuple[int, int]] = {}
    for mutant, noticed in results:
        name = mutant.path.relative_to(SOURCE).as_posix()
        good, of = found.get(name, (0, 0))
        found[name] = (good + noticed, of + 1)
    return found


def record(path: Path, commit: str, seed: int, results: Sequence[tuple[Mutant, bool]]) -> None:
    """What was found of a module replaces what was known of it."""
    known = json.loads(path.read_text()) if path.exists() else {}
    for name, (noticed, of) in score(results).items():
        missed = [
            f"{mutant.line}: {mutant.kind}"
            for mutant, good in results
            if not good and mutant.path.relative_to(SOURCE).as_posix() == name
        ]
        known[name] = {"noticed": noticed, "of": of, "missed": missed, "seed": seed,
                       "commit": commit}  # fmt: skip
    path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """1 if there is a mutant that nobody noticed."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="paths below src/ordercast begin so")
    parser.add_argument("--number", type=int, default=NUMBER, help="of mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help=f"keep the score in {SCORES}")
    given = parser.parse_args(words)
    found = [
        mutant
        for path in modules(given.modules, root)
        for mutant in mutants_of(path, (root / path).read_bytes())
    ]
    chosen = drawn(found, given.number, given.seed)
    print(f"{len(chosen)} of {len(found)} mutants, seed {given.seed}", flush=True)
    results: list[tuple[Mutant, bool]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Copy(root, Path(folder))
        for mutant in chosen:
            noticed = tree.notices(mutant, tests_of(mutant.path))
            results.append((mutant, noticed))
            place = f"{mutant.path}:{mutant.line}: {mutant.kind}"
            print(f"{'noticed' if noticed else 'NOT NOTICED'}  {place}", flush=True)
            if not noticed:
                print(mutant.shown((root / mutant.path).read_bytes()), flush=True)
    for name, (noticed, of) in score(results).items():
        print(f"{noticed:3} of {of:3}  {name}")
    if given.record:
        commit = _git(root, "rev-parse", "--short", "HEAD").strip()
        record(root / SCORES, commit, given.seed, results)
    return int(not all(noticed for _, noticed in results))


if __name__ == "__main__":
    sys.exit(main())
