"""The report in a real browser: it is laid out, read, pressed and printed by headless Chromium.

Where no Chromium is found these tests are skipped; `make browser` installs Debian's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from chromium import Browser, chromium, find_chromium
from notation import trace
from ordercast.judge.outcome import Outcome
from ordercast.judge.report import write_report
from ordercast.trace.schema import PROPERTIES, Event
from random_traces import random_traces
from reported import (
    CLEAN,
    CUT,
    LONG,
    NASTY,
    OPPOSITE,
    SWAPPED,
    TURNED,
    figures,
    ill,
    outcome_of,
    run_of,
)

pytestmark = pytest.mark.xdist_group("browser")

UNFOLD = "document.querySelectorAll('details').forEach(one => one.open = true)"
TOO_WIDE = "document.documentElement.scrollWidth - window.innerWidth"

# Of every diagram: pairs of labels that overlap, and texts that stick out of the drawing.
UGLY_LABELS = """[...document.querySelectorAll('.card svg.diagram')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBBox()]);
  const {width, height} = svg.viewBox.baseVal, found = [];
  texts.forEach(([one, a], k) => {
    if (a.x < 0 || a.y < 0 || a.x + a.width > width || a.y + a.height > height)
      found.push(one + ' sticks out');
    for (const [other, b] of texts.slice(k + 1))
      if (a.x < b.x + b.width - 1 && b.x < a.x + a.width - 1 &&
          a.y < b.y + b.height - 3 && b.y < a.y + a.height - 3)
        found.push(one + ' covers ' + other);
  });
  return found; })"""

# Texts with less contrast than 4.5 to 1, the bound of WCAG AA, with the worst first.
PALE_TEXTS = """(() => {
  const numbers = colour => colour.match(/[0-9.]+/g).map(Number);
  const light = colour => { const [r, g, b] = numbers(colour).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = one => { for (; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if ((numbers(colour)[3] ?? 1) > 0) return colour; }
    return 'rgb(255, 255, 255)'; };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = {};
  while (walk.nextNode()) {
    const text = walk.currentNode, one = text.parentElement;
    if (!text.textContent.trim() || one.closest('title, .skip')) continue;
    const style = getComputedStyle(one);
    const colour = one instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(colour), light(ground(one))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found[[ratio.toFixed(2), colour, ground(one)]] = text.textContent;
  }
  return found; })()"""


@dataclass(frozen=True)
class Pages:
    """The files under test."""

    violated: Path
    clean: Path
    inconclusive: Path
    hostile: Path
    wide: Path
    many: Path

    def all(self) -> list[Path]:
        return list(vars(self).values())


def renamed(events: list[Event], before: str) -> list[Event]:
    return [
        replace(
            e,
            process=e.process and before + e.process,
            message=e.message and before + e.message,
            group=e.group and before + e.group,
            members=e.members and tuple(before + name for name in e.members),
        )
        for e in events
    ]


def ring_of(processes: int) -> list[Event]:
    """Each delivers its own message before its neighbour's: no single order fits."""
    lines = [
        f"p{k}: send m{k} g; deliver m{k} g; deliver m{(k + 1) % processes} g; end"
        for k in range(processes)
    ]
    return trace("\n".join(lines))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    folder = tmp_path_factory.mktemp("reports")
    sick = run_of(
        trace("group g: p,q,s,t\n" + OPPOSITE.replace("s: ", "s: send x g; ")),
        *PROPERTIES, run="orders", figures=figures(7, health=ill()),
    )  # fmt: skip
    name = LONG + TURNED + NASTY
    hostile = run_of(
        renamed(trace(SWAPPED + "\nr: lost; crash\ns: lost"), name),
        "fifo.group", "agreement", run=NASTY + LONG,
        figures=figures(8, health=ill(name), before=name),
    )  # fmt: skip
    some = [
        run_of(t, *PROPERTIES, run=f"t{k}", figures=figures())
        for k, t in enumerate(random_traces(Random(2026), 25))
    ]
    fine = run_of(trace(CLEAN))
    holding = [changed(fine, run=f"fine{k}") for k in range(475)]
    outcomes = {
        "violated": Outcome((sick,)),
        "clean": outcome_of(trace(CLEAN)),
        "inconclusive": outcome_of(trace(CUT), "agreement", "vsync"),
        "hostile": Outcome((hostile,)),
        "wide": outcome_of(ring_of(60), "total.group"),
        "many": Outcome((*some, *holding)),
    }
    return Pages(**{n: write_report(one, folder / f"{n}.html") for n, one in outcomes.items()})


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium: name one in ORDERCAST_CHROMIUM, or `make browser` installs one")
    with chromium(program, tmp_path_factory.mktemp("profile")) as running:
        yield running


def style_of(browser: Browser, selector: str, name: str) -> Any:
    return browser.ask(f"getComputedStyle(document.querySelector({selector!r})).{name}")


def test_a_violated_run_shows_its_sentence_and_its_diagram(browser: Browser, pages: Pages) -> None:
    browser.open(pages.violated)
    assert browser.ask("document.querySelector('h2').innerText") == "Run orders"
    assert "expected properties violated" in browser.ask("document.body.innerText")
    sentences = browser.ask(
        "[...document.querySelectorAll('.card .sentence')].map(one => one.innerText)"
    )
    assert any(
        "p delivers a before b" in one and "q delivers b before a" in one for one in sentences
    )
    seen = browser.ask(
        "[...document.querySelectorAll('.card svg.diagram')].filter(one => one.checkVisibility())"
        ".map(one => one.getBoundingClientRect().width * one.getBoundingClientRect().height)"
    )
    assert seen and all(area > 5000 for area in seen)


def test_a_clean_run_shows_no_violation_and_a_healthy_trace(browser: Browser, pages: Pages) -> None:
    browser.open(pages.clean)
    words = browser.ask("document.body.innerText")
    assert (
        "All 4 properties expected of this run hold" in words and "Every log is complete" in words
    )
    assert browser.ask("document.querySelectorAll('.card').length") == 0
    assert browser.ask("document.querySelectorAll('svg.plot').length") == 3


def test_the_three_outcomes_differ_in_colour_and_in_words(browser: Browser, pages: Pages) -> None:
    looks = set()
    for page in (pages.violated, pages.clean, pages.inconclusive):
        browser.open(page)
        words = browser.ask("document.querySelector('.headline').innerText")
        looks.add((style_of(browser, ".bigsign", "backgroundColor"), words))
    assert len({colour for colour, _ in looks}) == len({words for _, words in looks}) == 3


def test_the_page_asks_the_network_for_nothing_and_breaks_no_policy(
    browser: Browser, pages: Pages
) -> None:
    for page in pages.all():
        browser.open(page)
        assert browser.requests() == [page.resolve().as_uri()]
        assert browser.complaints() == []


def test_hostile_names_become_no_elements_and_open_no_dialogue(
    browser: Browser, pages: Pages
) -> None:
    browser.open(pages.hostile)
    assert browser.ask("document.scripts.length") == 0
    assert not any(e.get("method") == "Page.javascriptDialogOpening" for e in browser.events)
    assert NASTY in browser.ask("document.querySelector('h2').innerText")


def test_no_page_is_wider_than_its_window(browser: Browser, pages: Pages) -> None:
    for page in pages.all():
        browser.open(page)
        browser.ask(UNFOLD)
        for width in (320, 400, 768, 1400):
            browser.resize(width)
            assert browser.ask(TOO_WIDE) <= 0, (page, width)


def test_no_cell_of_a_table_spills_into_the_next(browser: Browser, pages: Pages) -> None:
    for page in pages.all():
        browser.open(page)
        browser.ask(UNFOLD)
        spilling = browser.ask(
            "[...document.querySelectorAll('td')].filter(one => one.scrollWidth > "
            "one.clientWidth + 1).map(one => one.innerText)"
        )
        assert spilling == [], page


def test_no_label_of_a_diagram_covers_another_or_sticks_out(browser: Browser, pages: Pages) -> None:
    diagrams = 0
    for page in pages.all():
        browser.open(page)
        browser.ask(UNFOLD)
        assert browser.ask(UGLY_LABELS) == [], page
        diagrams += browser.ask("document.querySelectorAll('.card svg.diagram').length")
    assert diagrams > 100


def test_sixty_processes_are_drawn_in_one_diagram(browser: Browser, pages: Pages) -> None:
    browser.open(pages.wide)
    first = "document.querySelector('.card svg.diagram').querySelectorAll"
    assert browser.ask(f"{first}('.process').length") == 60
    assert browser.ask(f"{first}('.edge').length") == 60


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_stands_out_from_its_ground(browser: Browser, pages: Pages, dark: bool) -> None:
    for page in (pages.violated, pages.clean, pages.inconclusive, pages.many):
        browser.open(page, dark=dark)
        browser.ask(UNFOLD)
        assert browser.ask(PALE_TEXTS) == {}, page


def test_the_page_follows_the_scheme_of_the_reader(browser: Browser, pages: Pages) -> None:
    browser.open(pages.clean)
    light = style_of(browser, "body", "backgroundColor")
    browser.open(pages.clean, dark=True)
    assert light == "rgb(255, 255, 255)" != style_of(browser, "body", "backgroundColor")


def test_paper_is_white_and_everything_fits_on_it(browser: Browser, pages: Pages) -> None:
    for page in (pages.violated, pages.wide, pages.hostile, pages.inconclusive):
        browser.open(page, width=720, dark=True, media="print")
        assert style_of(browser, "body", "backgroundColor") == "rgb(255, 255, 255)"
        assert style_of(browser, "nav", "display") == "none"
        clipped = browser.ask(
            "[...document.querySelectorAll('svg.diagram')]"
            ".filter(one => one.getBoundingClientRect().right > innerWidth).length"
        )
        assert clipped == 0
        assert browser.ask(TOO_WIDE) <= 0, page
        assert browser.printed().startswith(b"%PDF")


def test_the_keyboard_reaches_and_opens_everything(browser: Browser, pages: Pages) -> None:
    browser.open(pages.violated)
    browser.press("Tab")
    assert browser.ask("document.activeElement.className") == "skip"
    reached: list[str] = []
    while "SUMMARY" not in reached and len(reached) < 60:
        browser.press("Tab")
        reached.append(browser.ask("document.activeElement.tagName"))
        ring = browser.ask("getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid", "what has the focus must be seen"
    assert reached.count("A") >= 5 and "DIV" in reached  # links, and boxes that scroll
    assert not browser.ask("document.activeElement.parentElement.open")
    browser.press("Enter")
    assert browser.ask("document.activeElement.parentElement.open")


def test_a_wide_table_scrolls_in_its_own_box(browser: Browser, pages: Pages) -> None:
    browser.open(pages.violated, width=400)
    wider = browser.ask(
        "[...document.querySelectorAll('.scroll')]"
        ".filter(one => one.scrollWidth > one.clientWidth).map(one => one.tabIndex)"
    )
    assert wider and set(wider) == {0}


def test_a_link_in_the_table_of_runs_leads_to_the_run(browser: Browser, pages: Pages) -> None:
    browser.open(pages.many)
    name = browser.ask("document.querySelector('td a').innerText")
    browser.ask("document.querySelector('td a').click()")
    heading = browser.ask("document.querySelector(':target h2').innerText")
    assert heading.startswith(f"Run {name} ")


def test_the_picture_of_a_report_is_not_empty(
    browser: Browser, pages: Pages, tmp_path: Path
) -> None:
    browser.open(pages.violated)
    picture = browser.picture(tmp_path / "report.png")
    assert picture.stat().st_size > 50_000  # an empty page is far smaller
