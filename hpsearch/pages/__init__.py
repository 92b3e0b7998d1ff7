"""Pages on the studies of a database, with Optuna's dashboard beside them.

* `gate`: who may send it requests; `site`: which address leads where.
* `study_pages`, `trial_pages`: what is shown; `changes`: what forms ask of a study.
* `taking`: how requests are taken that send something, so that they cost nobody else anything.
* `forms`: the fields of forms; `addresses`: what an address names.
* `rendering`: pages as HTML, from `templates/`; `files`: scripts and styles, from `static/`.
"""
