"""Numbers that lie far from all others, and would decide alone on a mean and a deviation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FAR = 30.0
"""The distance from the median, in widths of the middle half, from which on a number lies far from
the others. Skewed quantities, such as incomes, reach 10 to 20."""


def usual_range(numbers: Floats) -> tuple[float, float]:
    """The range outside of which a number lies far from the others.

    Args:
        numbers: None of them is NaN. Of no numbers, the range is that of 0.
    """
    if len(numbers) == 0:
        return 0.0, 0.0
    low, median, high = np.percentile(numbers, [25, 50, 75])
    width = high - low
    if width == 0:  # most are equal: by those that differ
        distances = np.abs(numbers - median)
        width = np.median(distances[distances > 0]) if distances.any() else 0.0
    return float(median - FAR * width), float(median + FAR * width)


def within(numbers: Floats, limits: tuple[float, float]) -> Floats:
    """The numbers in a range."""
    low, high = limits
    return numbers[(numbers >= low) & (numbers <= high)]
