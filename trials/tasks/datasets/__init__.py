"""The data of a built-in task: read from files, checked, split, encoded and kept.

- `data_set`: the steps from files to arrays, the same for every kind; a kind fills in its own
- `spec`: the keys of a `task` part that say where the data is
- `tables`: data files as tables, with errors for the person who wrote the path
- `labels`, `splitting`: classes and their names, and the rows that are held out
- `prepared`, `entries`: prepared data, kept on the disk
"""
