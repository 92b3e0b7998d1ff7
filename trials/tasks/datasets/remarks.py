"""Sentences on data that can be used and may not be what its owner believes."""

import collections
from collections.abc import Collection, Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from trials.tasks.datasets.labels import alike, grouped, listed, quoted

Floats = npt.NDArray[np.float64]

FAR = 30.0
"""The distance from the median, in widths of the middle half, from which on a number lies far from
the others. Skewed quantities, such as incomes, reach 10 to 20."""
NEARLY_ALL = 0.9  # the share of the rows from which on one class makes accuracy say little


def on_classes(counts: collections.Counter[str], unit: str) -> Iterator[str]:
    yield from on_names(counts, unit)
    (most, count), total = counts.most_common(1)[0], counts.total()
    if NEARLY_ALL * total <= count < total:
        what = f"{count:,} of {total:,} {unit}s have the class {quoted(most)}"
        yield f"{what}, an accuracy that needs no learning; macro_f1 and mcc show what is learnt"


def on_names(counts: collections.Counter[str], unit: str) -> Iterator[str]:
    """Sentences on classes with one row, and on those that differ in how they are written alone."""
    alone = [name for name, count in counts.items() if count == 1]
    if alone:
        classes = "1 class has" if len(alone) == 1 else f"{len(alone)} classes have"
        shown = listed(map(quoted, sorted(alone)))
        yield f"{classes} one {unit} only, too few to train and to validate: {shown}"
    if groups := alike(counts):
        yield f"classes that are written differently and may be one: {grouped(groups)}"


def on_quantities(numbers: Floats, unit: str) -> Iterator[str]:
    values, counts = np.unique(numbers, return_counts=True)
    count, total = int(counts.max()), len(numbers)
    if NEARLY_ALL * total <= count < total:
        most = float(values[counts.argmax()])
        yield f"{count:,} of {total:,} {unit}s have one number, {most:g}"
    if far := on_outliers(numbers, unit):
        yield f"{far}, and decides on the scale of what is learnt; correct or remove it"


def on_outliers(numbers: Floats, unit: str) -> str | None:
    """The beginning of a sentence on numbers far from the others; None if there are none."""
    usual = usual_range(numbers)
    others = within(numbers, usual)
    count = len(numbers) - len(others)
    if count == 0:
        return None
    farthest = float(numbers[np.abs(numbers - np.median(numbers)).argmax()])
    rows = f"1 {unit} lies" if count == 1 else f"{count:,} {unit}s lie"
    what = f"{rows} far from the others, which go from {others.min():g} to {others.max():g}"
    return f"{what} (the farthest is {farthest:g})"


def on_shared(
    known: Collection[Hashable], other: Sequence[Hashable], unit: str, what: str
) -> Iterator[str]:
    """The sentence on rows that are in two parts of the data. `what` ends it, after "rows"."""
    shared = sum(key in known for key in other)
    if not shared:
        return
    total = len(other)
    count = f"all {total:,}" if shared == total else f"{shared:,} of {total:,}"
    yield f"{count} {unit}s {what}"


def usual_range(numbers: Floats) -> tuple[float, float]:
    """The range outside of which a number lies far from the others. `numbers`: none of them is NaN.
    Of no numbers, the range is that of 0."""
    if len(numbers) == 0:
        return 0.0, 0.0
    low, median, high = np.percentile(numbers, [25, 50, 75])
    width = high - low
    if width == 0:  # most are equal: by those that differ
        distances = np.abs(numbers - median)
        width = np.median(distances[distances > 0]) if distances.any() else 0.0
    return float(median - FAR * width), float(median + FAR * width)


def within(numbers: Floats, limits: tuple[float, float]) -> Floats:
    low, high = limits
    return numbers[(numbers >= low) & (numbers <= high)]
