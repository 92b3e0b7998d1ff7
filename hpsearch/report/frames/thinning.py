"""Fewer points, curves and bars, so that the picture of a large study stays small and readable.

Every function says how much it left out; the page says it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hpsearch.store.reading.course import each_row


@dataclass(frozen=True, slots=True)
class Thinned:
    """What is left, and of how many it is left."""

    frame: pd.DataFrame
    shown: int
    of: int

    def said(self, things: str) -> str | None:
        """A sentence that says what is missing; None if nothing is."""
        if self.shown == self.of:
            return None
        return f"{self.shown:,} of {self.of:,} {things} are drawn, evenly chosen, with the best."


def evenly(many: Sequence[int], most: int, always: Iterable[int] = ()) -> list[int]:
    """At most `most` of some numbers, evenly spaced in their order; `always` are among them."""
    kept = set(always)
    if len(many) <= most:
        return list(many)
    places = np.linspace(0, len(many) - 1, max(0, most - len(kept))).round().astype(int)
    chosen = kept | {many[place] for place in places}
    return [number for number in many if number in chosen]


def thin_curves(curves: pd.DataFrame, most: int, points: int, ranking: Sequence[int]) -> Thinned:
    """At most `most` curves of at most about `points` points.

    Args:
        curves: Reports, with the columns `trial` and `resource`, by resource.
        most: Curves.
        points: Points of a curve; its first and last one stay.
        ranking: Trials, the best first: a third of what is shown are the best.
    """
    with_curves = set(curves["trial"].unique())
    ordered = [number for number in ranking if number in with_curves]
    ordered += sorted(with_curves - set(ordered))
    chosen = evenly(ordered, most, ordered[: most // 3])
    frame = curves[curves["trial"].isin(chosen)]
    place = frame.groupby("trial").cumcount()
    length = frame.groupby("trial")["trial"].transform("size")
    stride = np.maximum(1, np.ceil(length / points).astype(int))
    is_kept = (place % stride == 0) | (place == length - 1)
    return Thinned(frame[is_kept], len(chosen), len(ordered))


_BARS = ["slot", "begin", "end", "kind", "attempts", "trial"]


def join_short(bars: pd.DataFrame, shortest_s: float, mixed: str) -> pd.DataFrame:
    """The bars of a timeline, neighbours on a slot joined where the joined bar is shorter than
    `shortest_s`.

    Args:
        bars: Columns `slot`, `begin`, `end`, `kind`, `attempts` and `trial`, by slot and time.
        shortest_s: No bar of several attempts becomes longer.
        mixed: The kind of a bar whose attempts ended differently.
    """
    joined: list[list[object]] = []
    slot: object = None
    begin = end = 0.0
    for row in each_row(bars):
        fits = row.slot == slot and row.end - begin <= shortest_s
        if fits:
            last = joined[-1]
            end = max(end, row.end)
            last[2] = end
            last[3] = last[3] if last[3] == row.kind else mixed
            last[4] = last[4] + row.attempts
        else:
            slot, begin, end = row.slot, row.begin, row.end
            joined.append([slot, begin, end, row.kind, row.attempts, row.trial])
    return pd.DataFrame(joined, columns=_BARS)
