"""Study files to start from, with comments.

- `starters`: a starter for each kind of task
- `data`: the parts of a starter that follow from training data
- `command_lines`: a starter of a command line whose numbers are searched
"""
