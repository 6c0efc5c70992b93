"""Schedules for the errata of TOTAL (003). Process 1 is the first of the view, the sequencer."""

from __future__ import annotations

from faulty_machines import totals
from faulty_machines.directed import Directed, Protocol
from faulty_machines.schedules_001 import flush
from machines import Bench, G, bench
from ordercast.core.events import View
from ordercast.machinery.total_headers import Bcast, NewView
from ordercast.protocols.javagroups import JavaGroupsTotal


def group(protocol: Protocol, *members: int) -> Bench:
    """A group in its first view; all know where the numbers begin."""
    b = bench(protocol, *members)
    b.carry()
    return b


def lost_request(protocol: Protocol) -> Bench:
    """What 2 wants to be broadcast does not come to the sequencer."""
    b = group(protocol, 1, 2)
    b.say(2, "a")
    b.lose(2, 1, text="a")
    b.go_on()
    return b


def lost_answer(protocol: Protocol) -> Bench:
    """The sequencer broadcasts what 2 said; 2 does not get it, and asks again."""
    b = group(protocol, 1, 2)
    b.say(2, "a")
    b.bring(2, 1, text="a")
    b.lose(1, 2, text="a")
    b.go_on()
    return b


def overtaken_request(protocol: Protocol) -> Bench:
    """The second request of 2 overtakes the first."""
    b = group(protocol, 1, 2)
    b.say(2, "a", "b")
    b.bring(2, 1, text="b")
    b.settle()
    return b


def lost_suffix(protocol: Protocol) -> Bench:
    """The last broadcast is lost on its way to 2."""
    b = group(protocol, 1, 2)
    b.say(1, "a", "b")
    b.lose(1, 2, text="b")
    b.go_on()
    return b


def lost_new_view(protocol: Protocol) -> Bench:
    """2 does not hear where the numbers begin."""
    b = bench(protocol, 1, 2)
    b.lose(1, 2, NewView)
    b.say(1, "a")
    b.go_on()
    return b


def broadcasts_before_new_view(protocol: Protocol) -> Bench:
    """3 has seen three numbers in another view. In the next one the numbers begin with 1, and
    four broadcasts overtake NEW_VIEW."""
    b = Bench({p: protocol(p) for p in (1, 2, 3, 4)})
    for p in (1, 2):
        b.step(p, View(G, 1, (1, 2), 1))
    for p in (3, 4):
        b.step(p, View(G, 1, (3, 4), 3))
    b.say(3, "k", "l", "m")
    b.settle()
    for p in (1, 2, 3, 4):
        b.step(p, View(G, 2, (1, 2, 3, 4), 1, era=2))
    b.say(1, "a", "b", "c", "d")
    b.bring(1, 3, Bcast)
    b.go_on()
    return b


def request_of_an_old_view(protocol: Protocol) -> Bench:
    """A second copy of a request comes after the view has changed."""
    b = group(protocol, 1, 2)
    b.say(2, "a")
    copy = b.find(2, 1, text="a")
    b.carry()
    flush(b, 1, 2)
    b.repeat(*copy)
    b.go_on()
    return b


def sequencer_dies(protocol: Protocol) -> Bench:
    """The sequencer has reached only 2 when it stops."""
    b = group(protocol, 1, 2, 3)
    b.say(1, "a")
    b.bring(1, 2, text="a")
    b.lose(1, 3)
    b.crash(1)
    flush(b, 2, 3)
    b.settle()
    return b


ROWS = (
    Directed(
        name="E-J1",
        breaks="validity",
        wrong=totals.NeverRepeatsARequest,
        right=JavaGroupsTotal,
        schedule=lost_request,
    ),
    Directed(
        name="E-J2",
        breaks="no_duplication",
        wrong=totals.RepeatsWithoutAnId,
        right=JavaGroupsTotal,
        schedule=lost_answer,
    ),
    Directed(
        name="E-J3",
        breaks="fifo.group",
        wrong=totals.NumbersRequestsOnArrival,
        right=JavaGroupsTotal,
        schedule=overtaken_request,
    ),
    Directed(
        name="E-J4",
        breaks="agreement",
        wrong=totals.SaysNoStatus,
        right=JavaGroupsTotal,
        schedule=lost_suffix,
    ),
    Directed(
        name="E-J5 lost NEW_VIEW",
        breaks="agreement",
        wrong=totals.NewViewAsPrinted,
        right=JavaGroupsTotal,
        schedule=lost_new_view,
    ),
    Directed(
        name="E-J5 BCAST before NEW_VIEW",
        breaks="total.group",
        wrong=totals.NewViewAsPrinted,
        right=JavaGroupsTotal,
        schedule=broadcasts_before_new_view,
    ),
    Directed(
        name="E-J6",
        breaks="no_duplication",
        wrong=totals.IgnoresTheViewId,
        right=JavaGroupsTotal,
        schedule=request_of_an_old_view,
    ),
    Directed(
        name="E-J7",
        breaks="agreement",
        wrong=totals.ClearsTheQueue,
        right=JavaGroupsTotal,
        schedule=sequencer_dies,
    ),
)
