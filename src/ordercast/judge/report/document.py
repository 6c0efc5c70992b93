"""The frame of every page: one file that opens anywhere, loads nothing and runs nothing."""

from __future__ import annotations

from ordercast.judge.report.markup import Markup, element
from ordercast.judge.report.style import STYLE

# No script, no image, no font, no request: only the styles in the page itself.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(heading: str, main: Markup, *, made_by: str, sign: str = "", style: str = "") -> str:
    """A whole document; `sign` goes before the title of the window, `style` after our own."""
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", f"{sign} {heading}".strip()),
        element("style", Markup(STYLE + style)),
    )
    body = element(
        "body",
        element("a", "Skip to the content", href="#main", class_="skip"),
        element("header", element("h1", heading)),
        element("main", main, id="main"),
        element("footer", f"Made by {made_by}. This file needs no network and runs no script."),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"
