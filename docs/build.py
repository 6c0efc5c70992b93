"""Write the parts of the docs that are made from the code: `make docs`."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
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
from ordercast.runtime import control_table
from ordercast.runtime.keywords import (
    Access,
    Delivery,
    Detection,
    Limits,
    NodeKeywords,
    Place,
    Recording,
    Sites,
    Speed,
    Transports,
    meanings,
)
from ordercast.runtime.node import Node
from ordercast.runtime.options import ON_DATAGRAMS, NodeOptions
from ordercast.service import metrics
from ordercast.service.settings import NodeSettings, SequencerSettings, Settings
from ordercast.trace.mapping import keys
from ordercast.trace.mapping.parse import FILES
from ordercast.transport.discovery import Discovery
from ordercast.transport.settings import Datagrams, IpMulticast
from ordercast.views import states
from ordercast.views import table as views_table

DOCS = Path(__file__).parent
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
HEAD = ["| option | default | meaning |", "|---|---|---|"]
BESIDE = re.compile(r"^    (\w+): .+?  # (.+)$", re.MULTILINE)

FIRST = (
    "bind", "bootstrap", "seeds", "cluster", "tls", "codec", "max_message", "resilience",
    "suspect_ms", "trace",
)  # fmt: skip
"""The options of a node that people need first."""

SUBJECTS = {
    "Who and where": (Place, Access),
    "Delivery and durability": (Delivery,),
    "Speed and windows": (Speed,),
    "Failure detection and partitions": (Detection,),
    "Limits and time-outs": (Limits,),
    "Transports and lost packets": (Transports,),
    "Sites and gateways": (Sites,),
    "Recording": (Recording,),
}


def pages() -> dict[Path, str]:
    """Every generated page and what it should say."""
    found = {
        DOCS / "GUARANTEES.md": _filled(DOCS / "GUARANTEES.md", markdown_table()),
        DOCS / "API.md": _filled(
            DOCS / "API.md",
            _node_options(FIRST),
            *(_of_subject(subject) for subject in SUBJECTS),
            _options(Datagrams),
            _options(IpMulticast),
        ),
        DOCS / "DISCOVERY.md": _filled(DOCS / "DISCOVERY.md", _options(Discovery)),
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
        DOCS / "STATES.md": _filled(
            DOCS / "STATES.md",
            states.markdown(states.COORDINATING),
            states.markdown(states.TAKING_PART),
            states.markdown(states.FLUSHES),
        ),
        DOCS / "SECURITY.md": _filled(
            DOCS / "SECURITY.md",
            control_table.markdown(),
            views_table.markdown(),
            sequencing_table.markdown(),
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
    """The fields that these classes declare, and what they mean."""
    return "\n".join([*HEAD, *(row for settings in owners for row in _rows(settings))])


def _rows(settings: type) -> Iterator[str]:
    told, defaults = _told(settings), _defaults(settings)
    for name in settings.__annotations__:
        yield f"| `{name}` | {_shown(defaults[name])} | {told[name]} |"


def _told(settings: type) -> dict[str, str]:
    """What the fields mean: the comments beside them, or what is said in their types, if a command
    needs it, too."""
    return dict(BESIDE.findall(inspect.getsource(settings))) or meanings(settings)


def _defaults(settings: type) -> dict[str, str]:
    """As they are written in the code; empty where there is none."""
    source = inspect.getsource(settings)
    found = {}
    for field in ast.parse(source).body[0].body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            default = field.value and ast.get_source_segment(source, field.value)
            found[field.target.id] = (default or "").replace("'", '"')
    return found


def _shown(default: str) -> str:
    return f"`{default.replace(' * ', ' ')}`" if default else "must be given"


def _of_subject(subject: str) -> str:
    """The options of a node on one subject."""
    names = [name for owner in SUBJECTS[subject] for name in owner.__annotations__]
    return f"### {subject}\n\n{_node_options(names)}"


def _node_options(names: Iterable[str]) -> str:
    """These options of a node, with their meanings."""
    defaults, told = _defaults_of_nodes(), meanings(NodeKeywords)
    lines = list(HEAD)
    for name in names:
        shown = _shown(defaults[name])
        if name in ON_DATAGRAMS and str(ON_DATAGRAMS[name]) != defaults[name]:
            shown += f"; over datagrams `{ON_DATAGRAMS[name]}`"
        lines.append(f"| `{name}` | {shown} | {told[name]} |")
    return "\n".join(lines)


def _defaults_of_nodes() -> dict[str, str]:
    """Of the parameters of `Node`, and of the fields behind them."""
    parameters = inspect.signature(Node).parameters.values()
    given = {one.name: repr(one.default).replace("'", '"') for one in parameters}
    return given | _defaults(NodeOptions)


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
