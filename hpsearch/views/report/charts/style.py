"""A picture with its words, and the style of all: colours, axes, and texts that others wrote."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpsearch.domain.numbers import number
from hpsearch.views.terminal.escapes import escaped

if TYPE_CHECKING:
    import plotly.graph_objects as go


INK = "#6b7280"
"""Of texts, where no page gives them a colour of its own; readable on white and on black."""
GRID = "rgba(128, 136, 150, 0.22)"

WINNER = "#d9700a"
CALM = "#3b7dd8"
PALE = "#8a919d"
BAD = "#d64545"
GOOD = "#2a9d78"
OTHER = "#8e63c7"  # each of these has a contrast of at least 3 with white and with a dark page
SIDE_BY_SIDE = (CALM, WINNER, GOOD, OTHER, BAD, PALE)
"""The colours of curves side by side, in their order."""
OF_TRIAL = "trial %{customdata}<extra></extra>"
TRIAL_AND_POINT = "trial %{customdata}<br>%{y:.5~g} at %{x}<extra></extra>"
"""What is shown under the pointer."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
LONGEST = 28  # characters of a name on an axis
MOST_WHOLE = 8  # the largest span of an axis of whole numbers that names all of them
FEWEST_VALUES = 20  # the fewest values with which an axis may leave some out


def plotly() -> Any:
    """Plotly's figures, which take long to import and which tables do without."""
    import plotly.graph_objects as figures

    return figures


def shown(text: str, longest: int = LONGEST) -> str:
    """A text that others wrote, on a figure: cut, on one line, and with no meaning to Plotly."""
    line = " ".join(escaped(text).split())
    escaped_line = html.escape(shortened(line, longest), quote=False)
    return escaped_line.replace("$", "&#36;")  # between two of them, Plotly would read TeX


def shortened(text: str, longest: int) -> str:
    """A text cut in its middle: names of parameters often differ in their ends."""
    if len(text) <= longest:
        return text
    after = (longest - 1) * 2 // 5
    before = longest - 1 - after
    return f"{text[:before]}…{text[-after:]}"


def figure(height: int, **layout: Any) -> go.Figure:
    made = plotly().Figure()
    made.update_layout(
        template="none",
        height=height,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "size": 13, "color": INK},
        margin={"l": 8, "r": 16, "t": 12, "b": 8, "autoexpand": True},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom"},
        hoverlabel={"font": {"family": FONT, "size": 13}},
        dragmode=False,
        **layout,
    )
    return made


def axis(title: str | None = None, **more: Any) -> dict[str, Any]:
    stated: dict[str, Any] = {
        "gridcolor": GRID,
        "linecolor": GRID,
        "zeroline": False,
        "automargin": True,
        "ticks": "",
        "fixedrange": True,
        **more,
    }
    if title is not None:
        stated["title"] = {"text": title, "standoff": 10, "font": {"size": 13}}
    return stated


def ticks(values: Any) -> dict[str, Any]:
    """The ticks of a linear axis: one for each number where all are whole and span little."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    is_whole = len(known) > 0 and bool((known == known.round()).all())
    if is_whole and known.max() <= known.min() + MOST_WHOLE:
        return {"dtick": 1}
    return {"nticks": 6}


def time_scale(longest_s: float) -> tuple[float, str]:
    for seconds, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if longest_s >= 2 * seconds:
            return seconds, name
    return 1.0, "seconds"


def value_range(values: Any, *, maximize: bool) -> list[float] | None:
    """The range of an axis where a few values are far worse than all others; None if all fit."""
    known = np.asarray(values, float)
    known = np.sort(known[np.isfinite(known)])
    if len(known) < FEWEST_VALUES:
        return None
    # A share of the largest number: widths of very large numbers would not be floats.
    most = max(abs(known[0]), abs(known[-1])) or 1.0
    known = known / most / 4
    low, high = np.quantile(known, [0.04, 0.96])
    width = high - low
    begin, end = known[0], known[-1]
    if maximize and begin < low - 1.5 * width:
        begin = low
    if not maximize and end > high + 1.5 * width:
        end = high
    if width <= 0 or (begin == known[0] and end == known[-1]):
        return None
    margin = 0.05 * (end - begin)
    return [float(begin - margin) * most * 4, float(end + margin) * most * 4]


def outside(limits: list[float] | None) -> str | None:
    """A remark on the values that a picture leaves out; None if it has all."""
    if limits is None:
        return None
    return "Values far worse than all others lie outside the picture."


def brief(value: float) -> str:
    short = float(f"{value:.3g}")
    return number(short if math.isfinite(short) else value)


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture with its words."""

    figure: go.Figure
    title: str | None  # None where the heading above it says the same
    alternative: str
    """The same in words, for readers who cannot see it; foreign texts are not escaped."""
    remark: str | None = None  # a sentence on what the picture leaves out
    narrowest: int = 0  # its least width in pixels: a narrower screen scrolls it


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
    present = [remark for remark in remarks if remark]
    return " ".join(present) if present else None
