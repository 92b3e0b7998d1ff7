"""Connections to a database.

- `url`: which databases there are
- `database`: a few connections, and their transactions
- `engine`: how a connection is opened, and its settings
- `selecting`: SELECTs that read all rows at once, strictly
- `open_files`: whether the files of an SQLite database are still where they were
"""
