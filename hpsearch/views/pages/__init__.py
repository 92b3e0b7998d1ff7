"""Pages on the studies of a database.

* `gate`: the check of each request; `site`: the addresses, and the pages of errors.
* `pages`: the pages and their forms; `changes`: the requests that forms make to a study.
* `rendering`: pages as HTML, from `templates/` and `static/`.
"""
