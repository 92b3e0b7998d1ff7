"""A trial that is trained again, compared with its record.

- `recorded`: the training on record: where it was paused, and how it ended
- `repetition`: trains the trial again in the same parts
- `comparison`: the first difference between the two, and what is not as it was
"""
