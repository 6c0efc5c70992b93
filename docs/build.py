"""Write the parts of the docs that are made from the code: `make docs`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from experiments import results
from ordercast.cli.guarantees import markdown_table
from ordercast.experiments import schema as sweeps
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.plan import Settings as PlanSettings
from ordercast.membership import agreement_table
from ordercast.pipeline.tables import schema as tables
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing import table as sequencing_table
from ordercast.runtime.options import ON_DATAGRAMS, NodeOptions
from ordercast.service import metrics
from ordercast.service.settings import NodeSettings, SequencerSettings, Settings
from ordercast.trace.mapping import keys
from ordercast.trace.mapping.parse import FILES
from ordercast.transport.settings import Datagrams, IpMulticast
from ordercast.views import table as views_table

DOCS = Path(__file__).parent
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
OPTION = re.compile(r"^    (\w+): [^=#]+?(?: = (.+?))?  # (.+)$", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Every generated page and what it should say."""
    found = {
        DOCS / "GUARANTEES.md": _filled(DOCS / "GUARANTEES.md", markdown_table()),
        DOCS / "API.md": _filled(
            DOCS / "API.md", _options(NodeOptions), _options(Datagrams), _options(IpMulticast)
        ),
        DOCS / "OPERATIONS.md": _filled(
            DOCS / "OPERATIONS.md",
            _options(Settings, SequencerSettings),
            _options(NodeSettings),
            metrics.markdown(),
        ),
        DOCS / "FOREIGN.md": _filled(DOCS / "FOREIGN.md", _mapping_keys()),
        DOCS / "TABLES.md": _filled(DOCS / "TABLES.md", tables.markdown()),
        DOCS / "EXPERIMENTS.md": _filled(
            DOCS / "EXPERIMENTS.md",
            _options(PlanSettings),
            _options(Coordinates),
            sweeps.markdown(),
        ),
        DOCS / "RESULTS.md": results.page(),
        DOCS / "NODE_VIEWS.md": _filled(DOCS / "NODE_VIEWS.md", agreement_table.markdown()),
        DOCS / "SECURITY.md": _filled(
            DOCS / "SECURITY.md", views_table.markdown(), sequencing_table.markdown()
        ),
    }
    for name, protocol in PROTOCOLS.items():
        page = (import_module(protocol.__module__).__doc__ or "").strip()
        title, _, body = page.partition("\n")
        text = f"# {title.rstrip('.')}\n\n`{name}`, from `{_source(protocol)}`.\n\n"
        file = DOCS / "protocols" / f"{name}.md"
        found[file] = f"{text}```text\n{body.strip()}\n```\n{_written_below(file)}"
    return found


def _written_below(page: Path) -> str:
    """What people wrote under the generated part: it begins with a heading, and stays."""
    _, heading, rest = (page.read_text() if page.exists() else "").partition("\n## ")
    return heading + rest


def _filled(page: Path, *parts: str) -> str:
    """The page with these parts between its marks, in their order."""
    head, *rest = page.read_text().split(BEGIN)
    for part, old in zip(parts, rest, strict=True):
        head += f"{BEGIN}\n\n{part}\n\n{END}{old.split(END)[1]}"
    return head


def _options(*owners: type) -> str:
    """The fields that these classes declare, with what the comments beside them say."""
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for settings in owners:
        lines += _rows(settings)
    return "\n".join(lines)


def _rows(settings: type) -> Iterator[str]:
    rows = OPTION.findall(inspect.getsource(settings))
    assert [name for name, _, _ in rows] == list(settings.__annotations__), settings
    for name, default, meaning in rows:
        shown = f"`{default.replace(' * ', ' ')}`" if default else "must be given"
        other = str(ON_DATAGRAMS.get(name, default)) if settings is NodeOptions else default
        if other != default:
            shown += f"; over datagrams `{other}`"
        yield f"| `{name}` | {shown} | {meaning} |"


def _mapping_keys() -> str:
    """The keys of a mapping file, table by table."""
    parts = (
        ("At the top", keys.WHOLE_KEYS),
        ("At the top, or in each `[[source]]`", keys.SOURCE_KEYS),
        ("`format`", {name: f"{keys.FORMATS[name]}; {_patterns(name)}" for name in keys.FORMATS}),
        ('An entry of `[columns]`: `ours = "theirs"`, or a table with', keys.COLUMN_KEYS),
        ("`[[group]]`", keys.GROUP_KEYS),
    )
    return "\n\n".join(
        "\n".join(
            [
                f"| {title} | |",
                "|---|---|",
                *(f"| `{key}` | {told} |" for key, told in part.items()),
            ]
        )
        for title, part in parts
    )


def _patterns(form: str) -> str:
    return "by default " + ", ".join(f"`{pattern}`" for pattern in FILES[form])


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
    main()
