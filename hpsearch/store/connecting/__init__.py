"""Connections to a database.

- `url`: which databases there are
- `database`: connections, their settings and transactions
- `open_files`: whether the files of an SQLite database are still where they were
"""
