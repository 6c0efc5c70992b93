"""The violations of a run: a card for each piece of evidence.

A card has one sentence, the diagram of the events involved, what else the witness knows, and the
witness as data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ordercast.judge.outcome import Table
from ordercast.judge.report.diagram import draw
from ordercast.judge.report.layout import Layout
from ordercast.judge.report.markup import Markup, element, joined, listed, scrolling
from ordercast.judge.report.names import LONGEST, Names, shortened
from ordercast.judge.report.scene import Scene, scene
from ordercast.judge.report.verdicts import in_short
from ordercast.judge.report.written_out import Witness, written_out
from ordercast.trace.schema import Violation

MOST_CARDS = 3  # per property; all violations are counted
WIDEST_HALF = 440  # a drawing up to here fits beside another
LONGEST_SENTENCE = 400  # characters; the rest unfolds


def cards(violations: Sequence[Violation], own: Table) -> Markup:
    """One card per piece of evidence. Properties that show the same one share it."""
    shared: dict[object, list[Violation]] = {}
    for one in violations:
        shared.setdefault(_identity(one), []).append(one)
    shown = dict.fromkeys(own.counts, 0)
    drawn = []
    for same in shared.values():
        first = same[0].property
        if shown[first] < MOST_CARDS:
            shown[first] += 1
            drawn.append(_card(same))
    left_out = _left_out(violations, own, len(shared) - len(drawn))
    return joined(element("div", *drawn, class_="cards"), left_out)


def _identity(one: Violation) -> object:
    """The same for the same evidence: a cycle is the same wherever one starts to go round."""
    cycle: Sequence[Witness] | None = one.witness.get("cycle")  # type: ignore[assignment]
    if cycle is None:
        return one.sentence
    return frozenset((step["process"], step["before"], step["after"]) for step in cycle)


def _left_out(violations: Sequence[Violation], own: Table, hidden: int) -> Markup:
    names = list(dict.fromkeys(one.property for one in violations))
    kept = {name: sum(one.property == name for one in violations) for name in names}
    uncounted = [name for name in names if own.counts[name] > kept[name]]
    if not hidden and not uncounted:
        return Markup()
    counted = [joined(in_short(name), f" {own.counts[name]:,}×") for name in names]
    return element(
        "p", f"At most {MOST_CARDS} examples of each are drawn. In all: ", listed(counted),
        ". With ", element("code", "--json"), " you get more of them as data.", class_="soft",
    )  # fmt: skip


def _card(same: Sequence[Violation]) -> Markup:
    witness = same[0].witness
    names = Names()
    for name in _mentioned(witness):
        names.label(name)
    sentence = names.in_text(same[0].sentence)
    found = scene(witness)
    wide = len(sentence) > LONGEST_SENTENCE or (
        found is not None and Layout(found, names).right > WIDEST_HALF
    )
    tags = _tags([one.property for one in same])
    return element(
        "article",
        _sentence(sentence),
        element("p", "Broken: ", listed(tags), class_="tags"),
        _drawing(found, witness, names, sentence),
        written_out(witness, names),
        _in_full(names),
        element(
            "details",
            element("summary", "The witness as data"),
            element("pre", json.dumps(witness, indent=1, ensure_ascii=False)),
        ),
        class_="card wide" if wide else "card",
    )


def _tags(properties: Sequence[str]) -> list[Markup]:
    """The properties that are broken; a plain form and its uniform one in one."""
    plain = {name: f"{name}.uniform" in properties for name in properties}
    both = {f"{name}.uniform" for name in properties}
    return [
        joined(in_short(name), " and its uniform form" if also else "")
        for name, also in plain.items()
        if name not in both
    ]


def _mentioned(witness: Witness) -> list[str]:
    """The processes and messages of a witness, so that the sentence and the drawing agree."""
    found = [str(witness["process"])] if "process" in witness else []
    found += [*(witness.get("processes") or ()), *(witness.get("messages") or ())]
    for event in witness.get("events") or ():
        found += [event["process"], event.get("message") or ""]
    return [name for name in dict.fromkeys(found) if name]


def _sentence(sentence: str) -> Markup:
    if len(sentence) <= LONGEST_SENTENCE:
        return element("p", f"{sentence}.", class_="sentence")
    cut = sentence.rfind(" ", 0, LONGEST_SENTENCE)
    cut = cut if cut > 0 else LONGEST_SENTENCE
    summary = element("summary", f"{sentence[:cut]} …")
    return element("details", summary, element("p", f"… {sentence[cut:]}."), class_="sentence")


def _drawing(found: Scene | None, witness: Witness, names: Names, sentence: str) -> Markup:
    if found is None:
        number = len(witness.get("events") or ())
        return element("p", f"Not drawn: {number:,} events.", class_="soft") if number else Markup()
    label = f"Space-time diagram: {shortened(sentence, LONGEST_SENTENCE)}"
    return scrolling(draw(found, names, label=label), label="Space-time diagram")


def _in_full(names: Names) -> Markup:
    """The long names behind the labels."""
    changed = names.changed()
    if not changed:
        return Markup()
    rows = [element("dt", label) + element("dd", name) for label, name in changed.items()]
    summary = element("summary", f"Names in full: {len(changed)} are longer than {LONGEST} signs")
    return element("details", summary, element("dl", *map(Markup, rows), class_="names"))
