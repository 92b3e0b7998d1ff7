"""The database: all that is written to it and read from it.

store: whole studies, transactions and leases.
schema: the tables, made from the records; `version` brings older databases to them.
owners: who drives a study, by process and machine; `heartbeats`, who asks for its trials.
connecting: connections to a database, by its URL.
contents: a study read into a history, and what a history has touched; `rows`, records as rows.
codec: values as JSON; `shapes`, what each JSON column may hold.
cells: what the cells of each column may hold; `damage` finds what is not so.
reading: questions about studies and trials (`queries`, `standing`, `frames`, `course`).
audit: what must always be true of a database (`invariants`, `checkpoints`).
"""
