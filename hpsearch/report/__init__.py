"""What happened in a study, on one page to send to others.

* `story`: all that the page shows, read once; `result`: the best configuration on the page.
* `frames/`: what figures are drawn from; `figures/`: frames to Plotly figures, for the page,
  notebooks and dashboards.
* `charts`, `parameter_charts`, `trial_charts`: the pictures of a story, with their words.
* `wording`: the parts of a page; `sections`: those below the result.
* `rendering`: the page as HTML or Markdown, from `templates/` and `static/`;
  `writing`: a story to either of them.
* `one_trial`: a trial in Python, as a notebook shows it.
"""
