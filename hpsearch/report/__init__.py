"""The report of a study: one page to send to others.

* `page`: the page as text, and its sections below the result; read this first.
* `data`: all that the page shows, read once; `result`: the best configuration on the page.
* `frames/`: frames that are computed from it; `charts/`: its pictures, with their words.
* `wording`: the parts of a page, as texts that are neither HTML nor Markdown yet.
* `rendering`: the page as HTML or Markdown, from `templates/` and `static/`.
"""
