"""Costs from measurements: least squares, where no cost may be negative."""

from __future__ import annotations

from collections.abc import Sequence

Row = Sequence[float]


def fit(rows: Sequence[Row], measured: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Coefficients, each 0 or more, with the smallest weighted sum of squared distances.

    What comes out negative is set to 0 and left out, one after the other. A column that is the same
    as others, or all zero, gets 0.
    """
    used = list(range(len(rows[0])))
    while used:
        found = _solve(rows, measured, weights, used)
        worst = min(range(len(used)), key=lambda i: found[i])
        if found[worst] >= 0:
            break
        del used[worst]
    solution = [0.0] * len(rows[0])
    for column, value in zip(used, found if used else (), strict=True):
        solution[column] = value
    return solution


def _solve(
    rows: Sequence[Row], measured: Sequence[float], weights: Sequence[float], used: Sequence[int]
) -> list[float]:
    """The normal equations, by elimination with pivots."""
    size = len(used)
    matrix = [[0.0] * (size + 1) for _ in used]
    for row, value, weight in zip(rows, measured, weights, strict=True):
        for i, column in enumerate(used):
            scaled = weight * row[column]
            for j, other in enumerate(used):
                matrix[i][j] += scaled * row[other]
            matrix[i][size] += scaled * value
    return _eliminate(matrix)


def _eliminate(matrix: list[list[float]]) -> list[float]:
    size = len(matrix)
    largest = max((abs(x) for row in matrix for x in row[:size]), default=0.0)
    pivots: list[int | None] = []
    top = 0
    for column in range(size):
        pivot = max(range(top, size), key=lambda i: abs(matrix[i][column]), default=top)
        if top == size or abs(matrix[pivot][column]) <= 1e-9 * largest:
            pivots.append(None)  # it follows from the columns before it
            continue
        matrix[top], matrix[pivot] = matrix[pivot], matrix[top]
        for i in range(size):
            if i != top:
                factor = matrix[i][column] / matrix[top][column]
                matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[top], strict=True)]
        pivots.append(top)
        top += 1
    return [
        0.0 if row is None else matrix[row][size] / matrix[row][column]
        for column, row in enumerate(pivots)
    ]
