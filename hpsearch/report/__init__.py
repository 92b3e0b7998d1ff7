"""The report of a study: one page to send to others.

* `story`: all that the page shows, read once; `result`: the best configuration on the page.
* `frames/`: frames that are computed from it; `charts/`: its pictures, with their words.
* `wording`: the parts of a page; `sections`: those below the result.
* `rendering`: the page as HTML or Markdown, from `templates/` and `static/`;
  `writing`: a story to either of them.
"""
