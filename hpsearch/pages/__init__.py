"""Pages on the studies of a database.

* `gate`: who may send requests; `site`: the addresses, and the pages of errors.
* `study_pages`, `trial_pages`: the pages; `changes`: what forms ask of a study.
* `forms`: the fields of forms; `rendering`: pages as HTML, from `templates/` and `static/`.
"""
