"""The check of `make check` that no class inherits too deeply."""

from __future__ import annotations

from pathlib import Path

from tools.inheritance import SOURCE, classes_of, complaints

FIVE = {"m.E": ("m.D",), "m.D": ("m.C",), "m.C": ("m.B",), "m.B": ("m.A",), "m.A": ()}


def test_the_source_has_no_class_that_is_too_deep_but_the_exceptions() -> None:
    assert list(complaints(classes_of(SOURCE))) == []


def test_a_class_that_is_too_deep_is_named_with_its_ancestors() -> None:
    assert list(complaints(FIVE, ())) == ["m.E is 5 deep, and 4 are allowed: E < D < C < B < A"]


def test_an_exception_is_let_pass() -> None:
    assert list(complaints(FIVE, ("m.E",))) == []


def test_an_exception_that_is_not_too_deep_must_go() -> None:
    (complaint,) = complaints(FIVE, ("m.D", "m.E"))
    assert complaint == "m.D is not too deep: take it off the list of exceptions"


def test_the_longest_line_of_ancestors_counts() -> None:
    bases = {**FIVE, "m.F": ("m.A", "m.D")}
    (complaint,) = complaints(bases, ("m.E",))
    assert complaint.endswith("F < D < C < B < A")


def test_bases_are_found_through_imports_attributes_and_subscripts(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    files = {
        "__init__": "from p.a import A as Renamed",
        "a": "class A(dict[str, int]): ...",
        "b": "from p import Renamed\nclass B(Renamed[int], Generic[T]): ...",
        "c": "import p.b\nclass C(p.b.B): ...",
        "d": "import p.c as other\ndef f():\n    class D(other.C[T]): ...",
        "e": "from p import d\nclass E(d.D): ...\nclass A(made()): ...",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    bases = classes_of(tmp_path)
    assert bases["p.e.A"] == ()
    assert list(complaints(bases, ())) == ["p.e.E is 5 deep, and 4 are allowed: E < D < C < B < A"]
