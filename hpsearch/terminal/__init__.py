"""Tables and texts for a terminal, drawn with rich from values that others have read.

`tables`     tables of studies and trials
`status`     the status of a study; `trial`: the history of a trial
`result`     the result of a study
`panel`      a running study, with bars
`comparison` trials side by side
`escapes`    texts of others, printed without control characters
"""
