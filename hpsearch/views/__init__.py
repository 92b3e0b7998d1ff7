"""What people and programs see of a study: each view is drawn from the same facts.

`result`      the result of a study, computed once: best trials, luck, gain, ties
`words`       facts in plain English: estimates, certainty, requests
`documents`   studies and trials as plain values, for JSON and for agents
`beliefs`     what a search believes of its space, as such a value
`terminal`    tables and panels that are printed
`report`      the report of a study on one page, as HTML or Markdown
`pages`       live pages on studies, and the gate in front of them
`plan`        a study before it runs: its limits, its time, its disk
`live`        a study while it runs, watched from inside its driver
"""
