"""A trial that is trained again, compared with its record.

- `recorded`: the training on record: its parts, its reports and its end
- `repetition`: trains the trial again in the same parts
- `comparison`: the first difference between the two, and changes of files, code and versions
"""
