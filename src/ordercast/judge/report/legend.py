"""What the signs in a space-time diagram mean, with the signs themselves."""

from __future__ import annotations

from ordercast.judge.report.markup import Markup, element


def _sign(words: str, *shapes: Markup) -> Markup:
    picture = element(
        "svg", *shapes, viewBox="0 0 30 24", class_="sign diagram", aria_hidden="true"
    )
    return element("span", picture, words)


def _shape(name: str, class_: str, **places: object) -> Markup:
    return element(name, class_=class_, **places)


LEGEND = element(
    "p",
    element("span", "Only the events involved are drawn; time runs to the right."),
    _sign("send", _shape("circle", "send m0", cx=15, cy=12, r=6)),
    _sign("delivery", _shape("circle", "deliver m0", cx=15, cy=12, r=6)),
    _sign(
        "broken here",
        _shape("circle", "ring", cx=15, cy=12, r=10),
        _shape("circle", "deliver m0", cx=15, cy=12, r=5),
    ),
    _sign("never came", _shape("path", "cross", d="M9 6l12 12m0 -12l-12 12")),
    _sign("orders that contradict", _shape("path", "edge", d="M0 12H30")),
    class_="legend soft",
)
