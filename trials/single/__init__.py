"""One training without a study: ``python -m trials``.

- `command`: parses, trains, prints.
- `study_file`: the parts of a study file that one training uses.
"""
