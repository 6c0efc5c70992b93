"""A small line plot as SVG: numbers to the right by powers of two, numbers up by powers of ten."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import ceil, floor, log2, log10
from pathlib import Path

WIDTH, HEIGHT = 680, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 250, 50, 50
COLOURS = ("#0b5fa5", "#b3441a", "#3c7d22", "#7a3ea1", "#b8860b", "#666666")

Curve = Mapping[float, float]  # x -> y, both above 0


def write_plot(path: Path, title: str, right: str, up: str, curves: Mapping[str, Curve]) -> None:
    """One line with dots per curve; the names stand beside it."""
    xs = sorted({x for curve in curves.values() for x in curve})
    ys = [y for curve in curves.values() for y in curve.values()]
    low, high = floor(log10(min(ys))), ceil(log10(max(ys)))
    across = (WIDTH - LEFT - RIGHT) / max(log2(xs[-1] / xs[0]), 1)
    upwards = (HEIGHT - TOP - BOTTOM) / max(high - low, 1)

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + across * log2(x / xs[0]), HEIGHT - BOTTOM - upwards * (log10(y) - low)

    parts = [_text(8, 16, title, weight="bold"), _text(LEFT, HEIGHT - 10, right)]
    parts.append(_text(8, TOP - 14, up))
    for exponent in range(low, high + 1):
        _, y = place(xs[0], 10.0**exponent)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{10.0**exponent:g}", anchor="end"))
    for x in xs:
        parts.append(_text(place(x, ys[0])[0], HEIGHT - BOTTOM + 18, f"{x:g}", anchor="middle"))
    for k, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[k % len(COLOURS)]
        dots = [place(x, curve[x]) for x in sorted(curve)]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in dots)
        parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in dots]
        parts.append(_text(WIDTH - RIGHT + 14, TOP + 12 + 20 * k, name, fill=colour))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>' + "".join(parts) + "</svg>\n"
    )


def _text(
    x: float, y: float, text: str, anchor: str = "start", fill: str = "#222", weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" '
        f'font-family="sans-serif" font-size="12" font-weight="{weight}">{escape(text)}</text>'
    )
