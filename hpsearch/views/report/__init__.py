"""The report of a study: one page to send to others.

* `page`: the page as text; read this first.
* `data`: all that the page shows, read once; `charts/`: its pictures, with their words.
* `rendering`: the parts of a page, as HTML or Markdown, from `templates/` and `static/`.
"""
