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
from ordercast.core.declaration import LETTERS, NETWORKS, Declaration
from ordercast.core.protocol import OrderingProtocol
from ordercast.experiments import schema as sweeps
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.plan import Settings as PlanSettings
from ordercast.membership import agreement_table
from ordercast.pipeline.tables import schema as tables
from ordercast.protocols.registry import DEFAULTS, PROTOCOLS
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
from sweep.packets import evaluate

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
        found[DOCS / "protocols" / f"{name}.md"] = _protocol(name, protocol)
    choosing = DOCS / "protocols" / "README.md"
    found[choosing] = _filled(choosing, _side_by_side())
    return found


def _protocol(name: str, protocol: type[OrderingProtocol]) -> str:
    """What it declares; a half for users, `docs/for_users/NAME.md`; the head of its module, for
    readers of the source. Where several protocols share that head, each half has its own title."""
    title, _, source = (import_module(protocol.__module__).__doc__ or "").strip().partition("\n")
    told = (DOCS / "for_users" / f"{name}.md").read_text().strip()
    shared = ""
    if told.startswith("# "):
        shared = f"{title}\n\n"
        title, _, told = told.removeprefix("# ").partition("\n")
    return "\n\n".join(
        (
            f"# {title.rstrip('.')}",
            f"`{name}`, from `{_source(protocol)}`. Not sure? [Which protocol](README.md).",
            _declared(protocol.declaration),
            told.strip(),
            "## For readers of the source",
            f"{shared}```text\n{source.strip()}\n```\n",
        )
    )


SIZES = (4, 16)
"""Groups of so many members are the examples for formulas."""


def _declared(d: Declaration) -> str:
    """What need not be written by hand, since the protocol says it of itself."""
    rows = {
        "Choose it": f"`{_join(d)}`{_default(d)}",
        "Its order holds": _where(d),
        "Promises": ", ".join(f"`{promise}`" for promise in d.promises)
        + " ([what they mean](../PROPERTIES.md))",
        "A crash": d.crash,
        "Who may send": f"members only: {d.closed}" if d.closed else "anybody (`Node.send_to`)",
        "Header": f"{_counted(d.header)} integers{_letters(d.header)}",
        "Packets": f"{_counted(d.packets)} for {FRAME}{AT_MOST * d.sequenced}",
        "Small packets besides": f"{_counted(d.control)}; fewer when messages stream",
        "Said in silence": d.silence,
        "Other messages it waits for": DEPENDS if d.exact else MORE,
        "Weakest network": f"{d.network}: {NETWORKS[d.network]}; the library sees to the rest",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {row} |" for key, row in rows.items())])


ACROSS = "across all groups of a node that have this order and this protocol"
INSIDE = (
    "inside each group; nothing is promised across groups, so a node that joins a second group of "
    'this order has to say `scope="group"`'
)
NO_ORDER = "it promises no order, so there is none between groups either"
DEPENDS = "only those that it depends on"
MORE = "also some that it does not depend on"
FRAME = "a frame, which is one message or several"
AT_MOST = "; fewer where the sequencer is a member"


def _join(d: Declaration) -> str:
    return f'await node.join("room", order="{d.order}", protocol="{d.name}")'


def _where(d: Declaration) -> str:
    if d.order == "none":
        return NO_ORDER
    return ACROSS if d.scope == "domain" else INSIDE


def _default(d: Declaration) -> str:
    orders = [f"`{order}`" for order in d.orders if DEFAULTS[order] == d.name]
    more = [f"`{order}`" for order in d.also]
    given = f"; other orders that it gives: {', '.join(more)}" if more else ""
    return (f"; the default of {' and '.join(orders)}" if orders else "") + given


def _counted(formula: str) -> str:
    """A formula, and what it comes to in groups of two sizes, if they alone decide it."""
    try:
        values = [evaluate(formula, n) for n in SIZES]
    except (ValueError, SyntaxError):  # it has other letters
        return formula
    if len(set(values)) == 1:
        return formula
    told = ", ".join(f"{value} with {n}" for value, n in zip(values, SIZES, strict=True))
    return f"{formula} ({told} members)"


def _letters(formula: str) -> str:
    letters = (letter for letter in LETTERS if letter in formula and letter != "n")
    return "".join(f"; {letter}: {LETTERS[letter]}" for letter in letters)


def _side_by_side() -> str:
    """What protocols promise and cost, in a table to choose from."""
    few, many = SIZES
    packets = f"packets, {few} members | {many} members"
    head = f"| protocol | order | reaches | {packets} | all must speak | open |"
    rows = (_beside(protocol.declaration) for protocol in PROTOCOLS.values())
    return "\n".join((head, "|---|---|---|---:|---:|---|---|", *rows))


def _beside(d: Declaration) -> str:
    orders = ", ".join(
        f"`{order}`{' (default)' * (DEFAULTS[order] == d.name)}" for order in d.orders
    )
    packets = (f"{evaluate(d.packets, n)} + {evaluate(d.control, n)}" for n in SIZES)
    speak, open_ = ("yes" if d.everyone_speaks else "no"), ("no" if d.closed else "yes")
    reaches = "all groups" if d.scope == "domain" else "a group"
    cells = (f"[`{d.name}`]({d.name}.md)", orders, reaches, *packets, speak, open_)
    return f"| {' | '.join(cells)} |"


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
