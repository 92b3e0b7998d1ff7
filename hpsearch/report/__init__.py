"""What happened in a study, on one page to send to others.

* `story`: everything that the page tells, read once; `answer`: which configuration is best.
* `clocks`: GPU time and wall clock at a moment; `spending`: where the time went.
* `configurations`: parameters and what became of them; `importances`: which of them mattered.
* `thinning`: fewer points and curves, for pictures of large studies.
* `figures/`: frames to Plotly figures, for the page, notebooks and dashboards.
* `sections`: the parts of the page, as texts, tables and charts; `charts`: their pictures.
* `rendering`: the page as HTML or Markdown, from `templates/` and `static/`.
* `writing`: the file of it.
"""
