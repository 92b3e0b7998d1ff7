"""Which examples are validated: a fraction, or one of several folds."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]  # true for the chosen examples, shape (n,)


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
    """The examples of a fold, counted from 0; none if there are too few for so many folds.

    Each fold has a share of every stratum, as far as the examples of a group stay together: one
    after another, the largest first and else as `seed` draws them, goes where there is least of
    what it has. What alone has a stratum is in no fold, so that it is always trained on.
    """
    rows: defaultdict[object, list[int]] = defaultdict(list)
    for row, group in enumerate(range(len(strata)) if groups is None else groups):
        rows[group].append(row)
    clusters = [(each, Counter(strata[row] for row in each)) for each in rows.values()]
    holders = Counter(stratum for _, counts in clusters for stratum in counts)
    place = {stratum: number for number, stratum in enumerate(sorted(holders))}
    size = np.bincount([place[stratum] for stratum in strata])
    filled = np.zeros((folds, len(place)))
    found = np.zeros(len(strata), dtype=bool)
    drawn = np.random.default_rng(seed).permutation(len(clusters)).tolist()
    drawn.sort(key=lambda each: (-len(clusters[each][0]), sorted(clusters[each][1])))
    for members, counts in (clusters[each] for each in drawn):
        if any(holders[stratum] == 1 for stratum in counts):
            continue
        places, added = [place[stratum] for stratum in counts], list(counts.values())
        before = filled[:, places]
        fuller = (((before + added) ** 2 - before**2) / size[places]).sum(axis=1)
        chosen = np.lexsort((filled.sum(axis=1), fuller))[0]
        filled[chosen, places] += added
        found[members] = chosen == fold
    return found & bool(filled.any(axis=1).all())
