"""Write the parts of the docs that are made from the code: `make docs`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from ordercast.cli.guarantees import markdown_table
from ordercast.protocols.registry import PROTOCOLS

DOCS = Path(__file__).parent
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"


def pages() -> dict[Path, str]:
    """Every generated page and what it should say."""
    guarantees = DOCS / "GUARANTEES.md"
    head, rest = guarantees.read_text().split(BEGIN)
    tail = rest.split(END)[1]
    found = {guarantees: f"{head}{BEGIN}\n\n{markdown_table()}\n\n{END}{tail}"}
    for name, protocol in PROTOCOLS.items():
        page = (import_module(protocol.__module__).__doc__ or "").strip()
        title, _, body = page.partition("\n")
        text = f"# {title.rstrip('.')}\n\n`{name}`, from `{_source(protocol)}`.\n\n"
        found[DOCS / "protocols" / f"{name}.md"] = f"{text}```text\n{body.strip()}\n```\n"
    return found


def _source(protocol: type) -> str:
    return "src/" + protocol.__module__.replace(".", "/") + ".py"


def main() -> None:
    """Write what differs; say what was written."""
    for path, text in pages().items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    sys.exit(main())
