"""A picture with its words, and the trials that a picture of a large study shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture with its words."""

    figure: go.Figure
    title: str | None
    """None where the heading above it says the same."""
    alternative: str
    """The same in words, for readers who cannot see it; foreign texts are not escaped."""
    remark: str | None = None
    """A sentence on what the picture leaves out."""
    narrowest: int = 0
    """Its least width in pixels: a narrower screen scrolls it."""


def some_of(ranking: Sequence[int], most: int) -> list[int]:
    """At most `most` (3 or more) trials of a ranking, which has the best one first: a third of them
    are the best, the others are evenly spaced by rank."""
    if len(ranking) <= most:
        return list(ranking)
    best = ranking[: most // 3]
    others = ranking[most // 3 :]
    places = np.linspace(0, len(others) - 1, most - len(best)).round().astype(int)
    return [*best, *(others[place] for place in places)]


def left_out(drawn: int, of: int, things: str) -> str | None:
    """A sentence on how many trials are not drawn; None if all are."""
    if drawn == of:
        return None
    return f"{drawn:,} of {of:,} {things} are drawn: the best, and others evenly chosen by rank."


def joined(remarks: Sequence[str | None]) -> str | None:
    """Remarks as one; None if there are none."""
    present = [remark for remark in remarks if remark]
    return " ".join(present) if present else None
