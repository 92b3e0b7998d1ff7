"""Where the budget went, and who held which slot when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from hpsearch.report.figures.style import (
    BAD,
    CALM,
    GOOD,
    GRID,
    OTHER,
    PALE,
    WINNER,
    axis,
    figure,
    plotly,
    shown,
    time_scale,
)
from hpsearch.report.frames.spending import SpentOn
from hpsearch.store.reading.course import each_row
from hpsearch.words.numbers import duration

if TYPE_CHECKING:
    import plotly.graph_objects as go

MIXED = "several attempts"
"""The kind of a bar that stands for attempts which ended differently."""

_COLOURS = {
    SpentOn.FINISHED.value: CALM,
    SpentOn.PAUSED.value: PALE,
    SpentOn.FAILED.value: BAD,
    SpentOn.CONFIRMED.value: WINNER,
    SpentOn.RUNNING.value: GOOD,
    SpentOn.OVERHEAD.value: OTHER,
    MIXED: OTHER,
}


def budget(spent: pd.DataFrame) -> go.Figure:
    """A bar for each purpose that time went into.

    Args:
        spent: Columns `part` (a `SpentOn`) and `gpu_seconds`.
    """
    made = figure(60 + 34 * max(1, len(spent)), showlegend=False, bargap=0.35)
    places = list(range(len(spent)))
    seconds = spent["gpu_seconds"].to_numpy(float)
    longest = float(seconds.max()) if len(seconds) else 0.0
    unit_s, unit = time_scale(longest)
    total = float(seconds.sum()) or 1.0
    is_idle = [part == SpentOn.IDLE.value for part in spent["part"]]
    made.add_trace(
        plotly().Bar(
            x=seconds / unit_s,
            y=places,
            orientation="h",
            marker={
                "color": [
                    "rgba(0,0,0,0)" if idle else _COLOURS[part]
                    for part, idle in zip(spent["part"], is_idle, strict=True)
                ],
                "line": {"color": PALE, "width": [1.5 if idle else 0 for idle in is_idle]},
            },
            text=[f"{each / total:.0%}" for each in seconds],
            textposition="outside",
            cliponaxis=False,
            hoverinfo="skip",
        )
    )
    made.update_xaxes(axis(f"compute time ({unit})", range=[0, 1.15 * longest / unit_s or 1.0]))
    made.update_yaxes(
        axis(tickvals=places, ticktext=list(spent["part"]), autorange="reversed", showgrid=False)
    )
    return made


def timeline(bars: pd.DataFrame, slots: Sequence[str], pauses: Sequence[float] = ()) -> go.Figure:
    """A row for each slot, with a bar for each attempt on it.

    Args:
        bars: Columns `slot` (an index into `slots`), `begin` and `end` (seconds since the study
            began), `kind` (a `SpentOn` or `MIXED`), `attempts` and `trial`.
        slots: Their names.
        pauses: When the study was interrupted, in seconds since it began.
    """
    made = figure(110 + 24 * max(1, len(slots)), showlegend=True, barmode="overlay", bargap=0.25)
    longest = float(bars["end"].max()) if len(bars) else 0.0
    unit_s, unit = time_scale(longest)
    for kind, colour in _COLOURS.items():
        own = bars[bars["kind"] == kind]
        if own.empty:
            continue
        made.add_trace(
            plotly().Bar(
                base=(own["begin"] / unit_s).to_numpy(float),
                x=((own["end"] - own["begin"]) / unit_s).to_numpy(float),
                y=own["slot"].to_numpy(int),
                orientation="h",
                marker={"color": colour, "line": {"width": 0.6, "color": GRID}},
                name=kind,
                hovertext=_hovers(own),
                hoverinfo="text",
            )
        )
    for pause in pauses:
        made.add_vline(x=pause / unit_s, line={"color": PALE, "width": 1, "dash": "dash"})
    made.update_xaxes(axis(f"wall clock ({unit})", range=[0, longest / unit_s or 1.0]))
    rows = list(range(len(slots)))
    names = [shown(name, 20) for name in slots]
    made.update_yaxes(
        axis(tickvals=rows, ticktext=names, range=[len(slots) - 0.4, -0.6], showgrid=False)
    )
    return made


def _hovers(bars: pd.DataFrame) -> list[str]:
    texts = []
    for bar in each_row(bars):
        what = f"trial {bar.trial}" if bar.attempts == 1 else f"{bar.attempts} attempts"
        texts.append(f"{what}, {bar.kind}, {duration(bar.end - bar.begin)}")
    return texts
