"""Pages on the studies of a database.

* `gate`: the check of each request; `site`: the addresses, and the pages of errors.
* `pages`: the pages; `changes`: the requests that forms make to a study.
* `forms`: the fields of forms; `rendering`: pages as HTML, from `templates/` and `static/`.
"""
