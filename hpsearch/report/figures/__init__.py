"""Pictures of a study: functions from frames to Plotly figures, for the page, for notebooks and for
dashboards.

* `progress`: the best value so far; `courses`: learning curves.
* `configuration`: parallel coordinates and slices; `influence`: importances.
* `time`: where the budget went, and who held which slot when; `trade_off`: several objectives.
* `style`: colours, axes, and texts that others wrote.

No figure needs WebGL, so that they print, and run where a page may not compile code. Texts that
others wrote are escaped: Plotly reads some HTML in them.
"""
