"""A small line plot as SVG: numbers to the right by powers of two, numbers up by powers of ten.

A browser turns it into a PNG, if there is one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from html import escape
from math import log2, log10
from pathlib import Path

WIDTH, HEIGHT = 680, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 250, 50, 50
COLOURS = ("#0b5fa5", "#b3441a", "#3c7d22", "#7a3ea1", "#b8860b", "#666666")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

Curve = Mapping[float, float]  # x -> y, both above 0


def write_plot(
    path: Path,
    title: str,
    right: str,
    up: str,
    curves: Mapping[str, Curve],
) -> None:
    """One line with dots per curve; the names stand beside it."""
    xs = sorted({x for curve in curves.values() for x in curve})
    ys = [y for curve in curves.values() for y in curve.values()]
    marks = _marks(min(ys), max(ys))
    across = (WIDTH - LEFT - RIGHT) / max(log2(xs[-1] / xs[0]), 1)
    low, high = log10(marks[0]), log10(marks[-1])
    upwards = (HEIGHT - TOP - BOTTOM) / (high - low)

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + across * log2(x / xs[0]), HEIGHT - BOTTOM - upwards * (log10(y) - low)

    parts = [_text(8, 16, title, weight="bold"), _text(LEFT, HEIGHT - 10, right)]
    parts.append(_text(8, TOP - 14, up))
    for mark in marks:
        _, y = place(xs[0], mark)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{mark:,.12g}", anchor="end"))
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


def write_png(svg: Path, width: int = WIDTH, height: int = HEIGHT) -> Path | None:
    """The same as PNG, drawn by a browser, beside it; None if there is no browser."""
    names = (os.environ.get("ORDERCAST_CHROMIUM", ""), *BROWSERS)
    browser = next((found for name in names if name and (found := shutil.which(name))), None)
    if browser is None:
        return None
    png = svg.with_suffix(".png")
    size = f"--window-size={width},{height}"
    looks = ("--headless", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=2")
    command = [browser, *looks, size, f"--screenshot={png.resolve()}", svg.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return png


def _marks(least: float, most: float) -> list[float]:
    """Round numbers around all that is shown: powers of ten; with few, 2 and 5 times them, too."""
    tens = [10.0**k for k in range(-9, 13)]
    fine = [m * ten for ten in tens for m in (1, 2, 5)]
    steps = tens if most / least > 50 else fine
    first = max(i for i, mark in enumerate(steps) if mark <= least)
    last = min(i for i, mark in enumerate(steps) if mark >= most)
    return steps[first : max(last, first + 1) + 1]


def _text(
    x: float, y: float, text: str, anchor: str = "start", fill: str = "#222", weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" '
        f'font-family="sans-serif" font-size="12" font-weight="{weight}">{escape(text)}</text>'
    )
