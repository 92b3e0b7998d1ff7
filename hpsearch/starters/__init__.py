"""Study files to start from, with comments.

- `starters`: a starter for each kind of task
- `data_facts`: the facts of training data that a starter needs
- `command_lines`: a starter of a command line whose numbers are searched
"""
