"""A learning curve as lines of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hpsearch.words.numbers import number

HEIGHT = 9
WIDEST = 72
NARROWEST = 16
DOT = "•"


def curve(points: Sequence[tuple[float, float]], width: int) -> str | None:
    """A chart of a metric by resource, with the ends of both axes.

    Args:
        points: (resource, value), by resource; those that are not finite are left out.
        width: Columns that it may take.

    Returns: The lines; None if there are fewer than two points, or no room.
    """
    shown = [point for point in points if all(map(math.isfinite, point))]
    values = [value for _, value in shown]
    if len(shown) < 2:
        return None
    low, high = min(values), max(values)
    names = {0: number(high), HEIGHT - 1: number(low)}
    margin = max(map(len, names.values()))
    columns = min(WIDEST, width - margin - 2)
    if columns < NARROWEST:
        return None
    rows = [[" "] * columns for _ in range(HEIGHT)]
    first, last = shown[0][0], shown[-1][0]
    for resource, value in shown:
        column = _place(resource, first, last, columns)
        row = HEIGHT - 1 - _place(value, low, high, HEIGHT)
        rows[row][column] = DOT
    lines = [f"{names.get(at, ''):>{margin}} ┤{''.join(row)}" for at, row in enumerate(rows)]
    ends = number(first) + number(last).rjust(columns - len(number(first)))
    return "\n".join([*lines, f"{'':>{margin}}  {ends}"])


def _place(value: float, low: float, high: float, places: int) -> int:
    """Which of so many places a value has between two others."""
    if high == low:
        return 0
    share = value / (high - low) - low / (high - low)
    return min(places - 1, max(0, round(share * (places - 1))))
