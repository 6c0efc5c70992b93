"""Short forms of long names, so that a drawing stays readable and nothing gets confused."""

from __future__ import annotations

from unicodedata import east_asian_width

LONGEST = 22  # characters of a label in a drawing
LONGEST_IN_TABLE = 40
_LETTER = 7.3  # width of a character in the drawings' font, which gives all the same


def shortened(text: str, longest: int) -> str:
    """The text, or its two ends with an ellipsis between."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[-tail:]}"


def width(label: str) -> float:
    """How wide a label is drawn."""
    return _LETTER * sum(2 if east_asian_width(sign) in "WF" else 1 for sign in label)


class Names:
    """The labels of one drawing: different names never share a label."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._labels: dict[str, str] = {}

    def label(self, name: str) -> str:
        """The name as it stands in the drawing."""
        if name not in self._labels:
            self._labels[name] = self._free(shortened(_seen(name), self._longest))
        return self._labels[name]

    def changed(self) -> dict[str, str]:
        """The labels that are not the name itself, with the name."""
        return {label: name for name, label in self._labels.items() if label != name}

    def in_text(self, sentence: str) -> str:
        """The sentence with the same labels for the long names that it mentions."""
        for name in sorted(self._labels, key=len, reverse=True):
            if len(name) > self._longest:
                sentence = sentence.replace(name, self._labels[name])
        return sentence

    def _free(self, label: str) -> str:
        taken, number, free = set(self._labels.values()), 2, label
        while free in taken:
            free, number = f"{label} ({number})", number + 1
        return free


def _seen(name: str) -> str:
    """With a dot for each sign that cannot be seen or turns the text round."""
    return "".join(sign if sign.isprintable() else "·" for sign in name)
