"""The plan of a study, before it runs.

- `plan`: the trials, rungs and budget, in rows; the time that it takes
- `footprint`: the most that its checkpoints take on the disk
"""
