"""HTML and SVG built so that text from a trace cannot become markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


class Markup(str):
    """Text that is markup already. Every other string is escaped when it is put into an element."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: object) -> Markup:
    """`<name attributes>content</name>`. `class_` stands for class, `_` in names for `-`."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{joined(*content)}</{name}>")


def joined(*parts: str) -> Markup:
    """Several pieces one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else _text(part) for part in parts))


def listed(parts: Sequence[str]) -> Markup:
    """Several pieces with commas between them."""
    return joined(*[piece for part in parts for piece in (", ", part)][1:])


def prose(text: str) -> Markup:
    """Text of ours in which `backquotes` mark what a reader may type."""
    parts = text.split("`")
    return joined(*(element("code", p) if k % 2 else p for k, p in enumerate(parts)))


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    label: str,
    numbers: Sequence[int] = (),
    class_: str | None = None,
) -> Markup:
    """A table that scrolls inside its own box; `numbers` are the columns set to the right."""

    def cell(name: str, text: str, column: int, **attributes: object) -> Markup:
        class_ = "number" if column in numbers else None
        return element(name, text, class_=class_, **attributes)

    head = element("tr", *(cell("th", text, k, scope="col") for k, text in enumerate(headings)))
    body = [element("tr", *(cell("td", text, k) for k, text in enumerate(row))) for row in rows]
    inside = joined(element("thead", head), element("tbody", *body))
    return scrolling(element("table", inside, class_=class_), label=label)


def scrolling(inside: Markup, *, label: str) -> Markup:
    """A box that scrolls sideways where its content is too wide, also by keys."""
    return element("div", inside, class_="scroll", role="region", aria_label=label, tabindex=0)


def _text(text: str) -> str:
    """Escaped. Signs that cannot be seen, or turn the text round, are spelled out."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\n" else _spelled(c) for c in text)
    return escape(text)


def _spelled(sign: str) -> str:
    return sign.encode("unicode_escape", "replace").decode("ascii")
