"""A study whose trials Python code asks for and trains itself, in one process or in several.

`study`    what users call: `ask`, `tell`, and `trial` what they get
`opening`  new studies, and those that go on
`turns`    the brain over the shared history, for one transaction at a time;  `turn`  one of them
`answer`   whether a trial goes on after a report
`pulse`    the thread that says that a process is alive
`written`  a study file as a mapping, a path or its text
"""
