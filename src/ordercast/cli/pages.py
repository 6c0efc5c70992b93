"""Checks before the work that a page can be written after it."""

from __future__ import annotations

from pathlib import Path


def check_page(option: str, page: Path | None, example: str) -> None:
    """Raise `ValueError` if no file can have that name; `example` is what one might be called."""
    if page is None:
        return
    if page.is_dir():
        raise ValueError(f"{option} {page}: is a folder; name a file, for example {page / example}")
    if not page.parent.is_dir():
        raise ValueError(f"{option} {page}: there is no folder {page.parent}")
