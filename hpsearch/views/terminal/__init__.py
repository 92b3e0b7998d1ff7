"""Tables and texts for a terminal, drawn with rich from values that others have read.

`tables`     tables of studies and trials
`status`     the status of a study, its panel, its result; `trial`: one trial, or several
`escapes`    texts of others, printed without control characters
"""
