"""Studies whose trials Python code asks for and trains itself, in one process or in several.

`study`        a study with `ask` and `tell`; `trial`, a trial that was asked for
`opening`      new studies, resumed studies, and their study files
`session`      a process's part in a study: the brain over the shared history, signs of life
`transaction`  the decisions of a process while nobody else writes
"""
