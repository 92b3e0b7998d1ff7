"""The data of a built-in task: read from files, checked, split, encoded and kept.

- `data_set`: the steps from files to arrays, the same for every kind; `splits`: validation rows
- `tables`: data files as tables, with errors for the person who wrote the path
- `labels`: classes and their names
- `remarks`: data that may not be what its owner believes
- `prepared`: prepared data, kept on the disk
"""
