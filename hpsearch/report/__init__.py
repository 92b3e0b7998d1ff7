"""The report of a study: one page to send to others.

* `story`: everything that the page shows, read once; `answer`: which configuration is best.
* `frames/`: frames that are computed from it; `charts/`: its pictures, with their words.
* `wording`: the parts of a page; `sections`: those below the answer.
* `rendering`: the page as HTML or Markdown, from `templates/` and `static/`;
  `writing`: a story to either of them.
"""
