"""Every keyword is said once, and what takes keywords takes these: names, types, and meanings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_type_hints

import pytest

import ordercast as oc
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.keywords import (
    Access,
    ClusterKeywords,
    JoinKeywords,
    NodeKeywords,
    Place,
    Recording,
    SharedKeywords,
    Tuning,
    meanings,
)
from ordercast.runtime.options import ON_DATAGRAMS, WITHOUT_EFFECT, NodeOptions

TOLD_TO_OPTIONS = {"discover", "sequencer"}  # parameters of `Node` that are fields of `NodeOptions`

ALSO_GIVEN_AS = {
    "transport": Literal["tcp", "udp"] | oc.Udp | oc.IpMulticast,
    "voters": Iterable[str],
}
"""Options that may be given in more forms than they are kept in."""


def types_of(*owners: type) -> dict[str, Any]:
    return {name: kind for owner in owners for name, kind in get_type_hints(owner).items()}


def parameters_of(call: Callable[..., object], *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Those that can only be given by name, with their types."""
    hints = get_type_hints(call)
    return {
        one.name: hints[one.name]
        for one in inspect.signature(call).parameters.values()
        if one.kind is one.KEYWORD_ONLY and one.name not in without
    }


def test_the_keywords_of_a_node_are_its_parameters_and_the_options_behind_them() -> None:
    assert parameters_of(oc.Node.__init__) == types_of(Place, Access, Recording)
    kept = types_of(NodeOptions) | ALSO_GIVEN_AS
    given = types_of(Tuning) | {name: types_of(Place)[name] for name in TOLD_TO_OPTIONS}
    assert given == kept
    assert types_of(NodeKeywords) == types_of(Place, Access, Recording, Tuning)


def test_the_keywords_of_a_join_are_its_parameters() -> None:
    given = parameters_of(oc.Node.join) | {"order": get_type_hints(oc.Node.join)["order"]}
    assert given == types_of(JoinKeywords)


def test_the_keywords_of_a_local_cluster_are_its_parameters_and_those_of_its_nodes() -> None:
    given = parameters_of(oc.LocalCluster.__init__, without=["in_process"]) | types_of(
        SharedKeywords
    )
    assert given == types_of(ClusterKeywords)


def test_every_keyword_of_a_node_says_what_it_means_in_sentences() -> None:
    told = meanings(NodeKeywords)
    assert told.keys() == types_of(NodeKeywords).keys()
    assert [name for name, text in told.items() if not re.fullmatch(r'["A-Z`].+\.', text)] == []
    assert len(set(told.values())) == len(told)


def test_every_default_on_datagrams_and_every_former_option_is_of_a_name_that_fits() -> None:
    assert ON_DATAGRAMS.keys() <= types_of(Tuning).keys()
    assert not WITHOUT_EFFECT.keys() & types_of(NodeKeywords).keys()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("hartbeat_ms", "a Node has no option 'hartbeat_ms'; did you mean 'heartbeat_ms'?"),
        ("boostrap", "a Node has no option 'boostrap'; did you mean 'bootstrap'?"),
        ("trace_dir", "a Node has no option 'trace_dir'; did you mean 'trace"),
        ("zzz", "a Node has no option 'zzz'; there are bind, advertise, bootstrap, "),
    ],
)
def test_a_name_that_is_no_option_of_a_node_is_refused_with_what_was_meant(
    given: str, said: str
) -> None:
    with pytest.raises(TypeError) as refused:
        oc.Node("alice", **{"bootstrap": True, given: True})
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("windw_bytes", "window_bytes"), ("sequencrs", "sequencers"), ("inprocess", "in_process")],
)
def test_a_local_cluster_refuses_such_a_name_before_it_starts_anything(
    given: str, meant: str
) -> None:
    with pytest.raises(TypeError) as refused:
        oc.LocalCluster(3, **{given: 1})
    assert str(refused.value) == (
        f"a LocalCluster has no option {given!r}; did you mean {meant!r}?"
    )


def test_the_doctor_says_what_was_meant_too() -> None:
    with pytest.raises(ValueError, match="no option 'max_massage'; did you mean 'max_message'"):
        Subject(options={"max_massage": 1})


def test_voters_are_names_in_any_collection_and_no_single_text() -> None:
    assert NodeOptions.given({"voters": ["alice", "bob"]}).voters == ("alice", "bob")
    with pytest.raises(TypeError, match=r"voters is a list of names like .*, not 'alice'"):
        oc.Node("alice", bootstrap=True, voters="alice")
    with pytest.raises(TypeError, match="voters is a list of names"):
        oc.Node("alice", bootstrap=True, voters=3)
    with pytest.raises(ValueError, match="node"):
        oc.Node("alice", bootstrap=True, voters=["alice", ""])
