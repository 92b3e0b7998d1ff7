"""The study file: read once, checked strictly, frozen.

`reading`      from a file to a `StudySpec`, or to every mistake in it, and advice; read first
`models`       the parts of a study file as frozen objects;  `types`  the kinds of value in them
`parameters`   the parameters of a space;  `methods`  samplers and pruners, with their arguments
`space`        the parameters of a configuration, and the same space in Optuna's terms
`expressions`  conditions such as `heads * 8 <= width`: their language and their meaning
`levels`       the levels at which trials report and are compared
`text`         the file as text; configurations of a command line
`trackers`     the experiment trackers that a study reports to
`starters`     study files to start from, by the data or a command line
`schema`       the study file as a JSON Schema, for editors

Only this package uses `checks` (mistakes between parts) and `validation` (the base of its models,
and the words of its errors).
"""
