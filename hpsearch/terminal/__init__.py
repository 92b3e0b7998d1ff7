"""Tables and texts for a terminal, drawn with rich from values that others have read.

`tables`     tables of studies and trials; `status`: a study's status, a trial's history
`result`     the result of a study
`panel`      a running study, with bars
`comparison` trials side by side; `curve`: a learning curve
`escapes`    texts of others, printed without control characters
"""
