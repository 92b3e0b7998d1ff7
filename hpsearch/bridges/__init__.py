"""Programs that studies are exchanged with, a folder for each.

They share:

- `past_runs`: past runs as every reader leaves them, the columns that they are read from, and the
  study that they become
- `draft`: a study file in the making
- `sources`: the program that a source belongs to
"""
