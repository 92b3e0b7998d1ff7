"""Which examples are validated: a fraction, or one of several folds."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
"""True for the chosen examples, shape (n,)."""


def stratified(labels: Sequence[str], fraction: float, seed: int) -> Mask:
    """The rows of a validation fraction: a share of every class, and never its last row, so that
    classes with one row count nothing. `fraction`: in (0, 1)."""
    generator = np.random.default_rng(seed)
    rows_by_class: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows_by_class.setdefault(label, []).append(row)
    taken = np.zeros(len(labels), dtype=bool)
    owed = 0.0
    for label in sorted(rows_by_class):
        rows = generator.permutation(rows_by_class[label])
        if len(rows) == 1:
            continue
        # The rest of rounding goes to the next class, so that small classes add up to their share.
        owed += fraction * len(rows)
        count = round(owed)
        owed -= count
        taken[rows[: min(count, len(rows) - 1)]] = True
    return taken


def in_fold(
    fold: int, folds: int, strata: Sequence[str], groups: Sequence[str] | None, seed: int
) -> Mask:
    """The examples of a fold, counted from 0.

    Each fold has a share of every stratum, as far as the examples of a group stay together. One
    after another, the largest first, goes where there is least of what it has; those of one size in
    an order that `seed` draws. What alone has a stratum is never validated.
    """
    clusters: defaultdict[object, list[int]] = defaultdict(list)
    for row, group in enumerate(range(len(strata)) if groups is None else groups):
        clusters[group].append(row)
    counts = [Counter(strata[row] for row in rows) for rows in clusters.values()]
    holders = Counter(stratum for count in counts for stratum in count)
    names = {stratum: place for place, stratum in enumerate(sorted(holders))}
    totals = Counter(strata)
    size = np.array([totals[stratum] for stratum in names], dtype=np.float64)
    filled = np.zeros((folds, len(names)))
    found = np.zeros(len(strata), dtype=bool)
    all_rows = list(clusters.values())

    def place(cluster: int) -> tuple[int, list[str]]:
        return -len(all_rows[cluster]), sorted(counts[cluster])

    drawn = np.random.default_rng(seed).permutation(len(counts)).tolist()
    for each in sorted(drawn, key=place):
        if any(holders[stratum] == 1 for stratum in counts[each]):
            continue
        places = [names[stratum] for stratum in counts[each]]
        added = np.array(list(counts[each].values()))
        fuller = ((filled[:, places] + added) ** 2 - filled[:, places] ** 2) / size[places]
        order = np.lexsort((filled.sum(axis=1), fuller.sum(axis=1)))
        filled[order[0], places] += added
        found[all_rows[each]] = order[0] == fold
    return found
