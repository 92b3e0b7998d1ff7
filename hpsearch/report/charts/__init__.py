"""The pictures of a study: functions from what is recorded to Plotly figures, with their words.

* `progress`: the best value so far; `curves`: learning curves; `front`: several objectives.
* `parameters`: importances, parallel coordinates and slices.
* `chart`: a picture with its words; `style`: colours, axes, and texts that others wrote.

No figure needs WebGL, so that they print, and run where a page may not compile code. Texts that
others wrote are escaped: Plotly reads some HTML in them.
"""
