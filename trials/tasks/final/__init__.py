"""The final training of one configuration: a model to use, as a version of its own.

- `training`: trains, measures and writes the next version; `parts`: its steps.
- `versions`: the folders of versions, and of the one in the making.
"""
