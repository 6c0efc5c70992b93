"""A name is of one group: a change, or a directory, that says otherwise is its sender's fault."""

from __future__ import annotations

import pytest

from ordercast.core.changing import NumbersEnd
from ordercast.core.numbers import ViewNumbers
from ordercast.errors import PeerError
from ordercast.protocols.registry import PROTOCOLS
from ordercast.views import plausible
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Change, Next, Row, Rows

pages = PROTOCOLS.__getitem__
NUMBERS = ViewNumbers()


def row(g: int, name: str, era: int = 1) -> Row:
    return Row(GroupEntry(g, name, "total", "sequencing", 7), era, era, (1, 2), (), 1)


def change(*rows: Row) -> Change:
    return Change(1, (1, 1), tuple(Next(one, NumbersEnd(0, 1)) for one in rows), (1, 2))


def test_groups_of_different_names_are_founded_in_one_change():
    directory = Directory()
    directory.put(row(1, "x"))
    plausible.change(change(row(1, "x", 2), row(2, "y"), row(3, "z")), directory, pages, NUMBERS)


@pytest.mark.parametrize("rows", [(row(2, "x"),), (row(2, "y"), row(3, "y"))])
def test_a_change_gives_nobody_the_name_of_another_group(rows):
    directory = Directory()
    directory.put(row(1, "x"))
    with pytest.raises(PeerError, match="has the name of another one"):
        plausible.change(change(*rows), directory, pages, NUMBERS)


def test_a_directory_has_no_name_twice():
    said = Rows(1, 0, None, (row(1, "x"), row(2, "x")), 0)
    with pytest.raises(PeerError, match="two groups have one name"):
        plausible.rows(said, 0, Directory(), pages, NUMBERS)


def test_the_name_of_a_group_that_was_forgotten_is_free(monkeypatch):
    monkeypatch.setattr("ordercast.views.directory.MAX_EMPTY", 0)
    directory = Directory()
    directory.put(Row(row(1, "x").entry, 1, 1, (), (), 1))
    assert directory.prune() == [1]
    directory.put(row(2, "x"))
    directory.invariants()
    assert directory.contradicts(row(1, "x").entry)
    assert not directory.contradicts(row(2, "x").entry)
