"""What the options of commands mean: in the words that the docs use for the same settings."""

from __future__ import annotations

from ordercast.runtime.keywords import NodeKeywords, meanings
from ordercast.service.settings import NodeSettings, SequencerSettings


def in_a_terminal(owner: type) -> dict[str, str]:
    """The meanings of its options, without the marks of Markdown."""
    return {name: meaning.replace("`", "") for name, meaning in meanings(owner).items()}


OF_NODES = in_a_terminal(NodeKeywords)  # as a program gives them
OF_DAEMONS = in_a_terminal(SequencerSettings) | in_a_terminal(NodeSettings)
