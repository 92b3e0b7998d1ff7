"""The pictures of a study: functions from what is recorded to Plotly figures, with their words.

* `progress`: the best value so far; the front of several objectives; learning curves.
* `parameters`: importances, parallel coordinates and slices.
* `revisions`: the ladder of changes of code.
* `style`: a picture with its words; colours, axes, and texts that others wrote.

No figure needs WebGL, so that they print, and run where a page may not compile code. Texts that
others wrote are escaped: Plotly reads some HTML in them.
"""
