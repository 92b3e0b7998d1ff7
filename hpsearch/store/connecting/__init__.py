"""Connections to a database.

- `url`: which databases there are
- `hints`: commands that messages suggest, for the database that they are about
- `database`: the connections to one, their transactions, and the errors of a database
- `engine`: how a connection is opened, and its settings; `file_systems`: where a file is
- `waiting`: how long it is waited for; `impatient`: connections to PostgreSQL
"""
