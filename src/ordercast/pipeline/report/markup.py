"""HTML and SVG built so that text from a trace cannot become markup."""

from __future__ import annotations

from html import escape


class Markup(str):
    """Text that is markup already. Every other string is escaped when it is put into an element."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: object) -> Markup:
    """`<name attributes>content</name>`. `class_` stands for class, `_` in names for `-`."""
    inside = "".join(part if isinstance(part, Markup) else escape(part) for part in content)
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{inside}</{name}>")


def joined(*parts: str) -> Markup:
    """Several pieces one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def table(headings: list[str], rows: list[list[str]], class_: str | None = None) -> Markup:
    """A plain table."""
    head = element("tr", *(element("th", text, scope="col") for text in headings))
    body = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    inside = joined(element("thead", head), element("tbody", *body))
    return element("div", element("table", inside, class_=class_), class_="scroll")
