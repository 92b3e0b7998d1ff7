"""The study file: read once, checked strictly, frozen.

`reading`      from a file to a `StudySpec`, or to every mistake in it; read this first
`models`       the parts of a study file as frozen objects;  `types`  the kinds of value in them
`space`        which parameters a configuration has, and the same space in Optuna's terms
`levels`       where a trial reports, and where it is compared with others
`methods`      the samplers and pruners that a study file can name
`advice`       notes on what a study file asks for
`text`         the file as text: YAML with line numbers, another budget, the texts for mistakes
`trackers`     which experiment trackers are told
`schema`       the study file as a JSON Schema, for editors

Only this package uses `checks` (mistakes between parts).
"""
