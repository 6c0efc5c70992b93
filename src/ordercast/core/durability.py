"""How many members must hold a message before an application gets it.

*Durability* is one number for what two options say: `resilience=k`, a delivered message survives
any k crashes; `uniform=True`, it survives as many as leave more than half of its group.
"""

from __future__ import annotations

Durability = int | None
"""k; MAJORITY; or None where nothing was asked for"""

MAJORITY = -1  # more than half of the view, however many those are


def as_durability(resilience: int | None, *, uniform: bool) -> Durability:
    """Both options in one number; a ValueError says what is wrong with them."""
    if resilience is not None and resilience < 0:
        raise ValueError(
            f"resilience={resilience} must not be negative: it is the number of crashes that a "
            "delivered message survives"
        )
    if uniform and resilience is not None:
        raise ValueError(
            f"resilience={resilience} and uniform=True: give one of them; uniform=True means that "
            "more than half of a group hold what is delivered, whatever its size"
        )
    return MAJORITY if uniform else resilience


def holders_needed(durability: Durability, members: int) -> int:
    """Of a view with so many members, how many must hold a frame before it is delivered."""
    if durability == MAJORITY:
        return members // 2 + 1
    return min((durability or 0) + 1, members)


def in_words(durability: Durability) -> str:
    """As the caller would have to write it; empty where nothing was asked for."""
    if durability is None:
        return ""
    return "uniform=True" if durability == MAJORITY else f"resilience={durability}"
