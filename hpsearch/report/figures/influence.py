"""How much each parameter explains of the differences between trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hpsearch.report.figures.style import CALM, axis, figure, plotly, shown

if TYPE_CHECKING:
    import plotly.graph_objects as go


def importances(shares: pd.DataFrame) -> go.Figure:
    """A bar for each parameter.

    Args:
        shares: Columns `parameter` and `importance` (a share of 1), the largest first.
    """
    made = figure(70 + 26 * max(1, len(shares)), showlegend=False, bargap=0.35)
    places = list(range(len(shares)))
    percent = (100 * shares["importance"]).to_numpy(float)
    made.add_trace(
        plotly().Bar(
            x=percent,
            y=places,
            orientation="h",
            marker={"color": CALM},
            text=[f"{each:.0f}%" if each >= 0.5 else "<1%" for each in percent],
            textposition="outside",
            cliponaxis=False,
            hoverinfo="skip",
        )
    )
    names = [shown(name) for name in shares["parameter"]]
    widest = float(percent.max()) if len(percent) else 1.0
    made.update_xaxes(
        axis("share explained", range=[0, 1.15 * widest], nticks=6, showticklabels=False)
    )
    made.update_yaxes(axis(tickvals=places, ticktext=names, autorange="reversed", showgrid=False))
    return made
