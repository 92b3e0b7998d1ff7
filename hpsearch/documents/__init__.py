"""Studies and trials as plain values, for `--format json` and for agents.

`studies` a study in a line, and its status
`trials`  the best trials, one trial, trials side by side
`plain`   values that JSON has
"""
