"""Small traces written as text."""

from __future__ import annotations

import pytest

from notation import trace
from ordercast.trace.schema import Event


def test_every_form_of_line_is_read() -> None:
    text = """
        group g: p,q
        p: send a g; deliver a g from p; receive b g; end
        q: view 1 g p,q; join h; leave h; lost; crash
    """
    assert trace(text, run="r") == [
        Event(None, None, "group", group="g", members=("p", "q"), run="r"),
        Event("p", 1, "send", "a", "g", run="r"),
        Event("p", 2, "deliver", "a", "g", run="r", sender="p"),
        Event("p", 3, "receive", "b", "g", run="r"),
        Event("p", 4, "end", run="r"),
        Event("q", 1, "view", group="g", run="r", view=1, members=("p", "q")),
        Event("q", 2, "join", group="h", run="r"),
        Event("q", 3, "leave", group="h", run="r"),
        Event("q", 4, "lost", run="r"),
        Event("q", 5, "crash", run="r"),
    ]


def test_a_declaration_and_a_view_may_name_nobody() -> None:
    declaration, view = trace("group g:\np: view 1 g")
    assert declaration.members == view.members == ()


@pytest.mark.parametrize("line", ["p: sned a g", "p: send a", "p: end now"])
def test_what_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=f"cannot read '{line[3:]}'"):
        trace(line)
