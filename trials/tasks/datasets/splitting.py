"""The share of the training rows that is held out for validation, the same for every trial."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from trials.contract import Problem

Taken = npt.NDArray[np.bool_]
"""True for the rows taken, shape (n,)."""


def stratified(labels: Sequence[str], fraction: float, seed: int) -> Taken:
    """Which rows a validation fraction takes: of every class its share, and never its last row.

    Args:
        fraction: The share to take, in (0, 1).
        seed: Which rows it is, for a given file.

    Returns: True for the rows taken, shape (n,).
    """
    generator = np.random.default_rng(seed)
    rows_by_class: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows_by_class.setdefault(label, []).append(row)
    taken = np.zeros(len(labels), dtype=bool)
    owed = 0.0
    for label in sorted(rows_by_class):
        rows = generator.permutation(rows_by_class[label])
        # What rounding leaves over goes to the next class, so that small classes add up to their
        # share.
        owed += fraction * len(rows)
        count = min(round(owed), len(rows) - 1)
        owed -= count
        taken[rows[:count]] = True
    return taken


def too_small(fraction: float, taken: Taken) -> list[Problem]:
    """The problem of a fraction that leaves nothing to validate on; none if it leaves
    something."""
    if taken.any():
        return []
    what = (
        f"a fraction of {fraction} leaves no validation rows out of {len(taken)}; give a larger one"
    )
    return [Problem("task.validation", what)]
