"""A study whose trials Python code asks for and trains itself, in one process or in several.

`study`        what users call, `ask` and `tell`; `trial`, what they get; `verdict`, on a report
`opening`      new studies, those that go on, and their study files
`session`      a process's part in a study: the brain over the shared history, signs of life
`transaction`  what a process may do while nobody else writes
"""
