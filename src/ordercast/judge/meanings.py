"""Each property in words for people: its title, what it promises, and what happened if it broke.

The names of properties are a contract between programs. People read these words first and the name
after them; terminal, report and comparison all take them from here.
"""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """One property. `{n}` stands for the number of violations."""

    title: str
    promise: str  # the sentence that is true where the property holds
    once: str  # what happened, of a single violation
    often: str  # of several


def _order(title: str, promise: str) -> Meaning:
    return Meaning(title, promise, f"{title} was broken once", f"{title} was broken {{n}} times")


_MEANINGS = {
    "wellformed": Meaning(
        "Consistent trace",
        "the rows of the trace do not contradict one another",
        "The trace contradicts itself once",
        "The trace contradicts itself {n} times",
    ),
    "no_duplication": Meaning(
        "No duplicates",
        "no process delivers a message twice",
        "1 duplicate was delivered",
        "{n} duplicates were delivered",
    ),
    "no_creation": Meaning(
        "No delivery without a send",
        "every delivered message was sent before, to the same group",
        "1 delivery has no matching send before it",
        "{n} deliveries have no matching send before them",
    ),
    "membership": Meaning(
        "Delivery to members only",
        "a process delivers messages only while it is a member of the group",
        "1 message was delivered by a process that was not a member",
        "{n} messages were delivered by processes that were not members",
    ),
    "validity": Meaning(
        "Validity",
        "a sender that does not crash delivers its own messages, and some member delivers a "
        "message from outside the group",
        "1 delivery is missing although the sender of the message did not crash",
        "{n} deliveries are missing although the senders of the messages did not crash",
    ),
    "agreement": Meaning(
        "Agreement",
        "a message that one member delivers is delivered by all members that do not crash",
        "1 delivery is missing: another member delivered that message",
        "{n} deliveries are missing: other members delivered those messages",
    ),
    "agreement.uniform": Meaning(
        "Uniform agreement",
        "a message that any process delivers, even one that crashes later, is delivered by all "
        "members that do not crash",
        "1 delivery is missing: another process, perhaps a crashed one, delivered that message",
        "{n} deliveries are missing: other processes, perhaps crashed ones, delivered those "
        "messages",
    ),
    "fifo.group": _order(
        "FIFO order within each group",
        "messages of one sender to one group are delivered in the order sent",
    ),
    "fifo.global": _order(
        "FIFO order", "messages of one sender are delivered in the order sent, over all groups"
    ),
    "causal.group": _order(
        "Causal order within each group",
        "inside a group, a reply is never delivered before the message that it answers",
    ),
    "causal.global": _order(
        "Causal order",
        "a reply is never delivered before the message that it answers, over all groups",
    ),
    "total.group": _order(
        "Total order within each group", "all members of a group deliver its messages in one order"
    ),
    "total.global": _order(
        "Total order over all groups", "all deliveries of all groups fit into one single order"
    ),
    "total.pairwise": _order(
        "Pairwise total order", "no two processes deliver two messages in opposite orders"
    ),
    "total.gapless": _order(
        "Gapless total order",
        "members of a group deliver its messages in one order, and skip none that others deliver",
    ),
    "hybrid.total_fifo": _order(
        "Total and FIFO order within each group",
        "all members of a group deliver its messages in one order, and those of one sender in the "
        "order sent",
    ),
    "hybrid.total_causal": _order(
        "Total and causal order over all groups",
        "all deliveries of all groups fit into one single order, and a reply never comes before "
        "the message that it answers",
    ),
    "hybrid.kindberg": _order(
        "Hybrid order",
        "all members of a group deliver its messages in one order, and over all groups a reply "
        "never comes before the message that it answers",
    ),
    "views": Meaning(
        "Consistent views",
        "a view has the same members at every process, and views are installed in order",
        "Views contradict each other once",
        "Views contradict each other {n} times",
    ),
    "vsync": _order(
        "Virtual synchrony",
        "processes that install the same two views in a row deliver the same messages between them",
    ),
    "sending_view": Meaning(
        "Delivery in the view of the send",
        "a message is delivered in the view in which it was sent",
        "1 delivery was not in the view of its send",
        "{n} deliveries were not in the view of their send",
    ),
}

FAMILIES = (
    ("The record and the deliveries", ("wellformed", "no_", "membership", "validity", "agreement")),
    ("Order", ("fifo.", "causal.", "total.")),
    ("Several orders together", ("hybrid.",)),
    ("Views", ("views", "vsync", "sending_view")),
)  # heading, and how the names begin


def title(name: str) -> str:
    """The property in a few words. An order that is not known here keeps its own name."""
    own, is_uniform = _found(name)
    if own is None:
        return f"The order “{name}”"
    return f"Uniform {_inside(own.title)}" if is_uniform else own.title


def meaning(name: str) -> str:
    """What a property promises, as a sentence without its full stop."""
    own, is_uniform = _found(name)
    if own is None:
        return "an order that is not known here"
    return f"{own.promise}; this also binds processes that crash" if is_uniform else own.promise


def broken(name: str, count: int) -> str:
    """What happened, where the property is violated so many times."""
    own, is_uniform = _found(name)
    assert own is not None, f"{name} has no words"
    told = own.once if count < 2 else own.often.format(n=f"{count:,}")
    return f"{told}, counting processes that crashed" if is_uniform else told


def _found(name: str) -> tuple[Meaning | None, bool]:
    """The words, and whether they are those of the plain form while the uniform one is meant."""
    plain = name.removesuffix(".uniform")
    return _MEANINGS.get(name) or _MEANINGS.get(plain), name != plain and name not in _MEANINGS


def _inside(sentence: str) -> str:
    """As it is written after another word."""
    return sentence if sentence.startswith("FIFO") else sentence[0].lower() + sentence[1:]
