"""The database: all that is written to it and read from it.

store: whole studies, transactions and leases.
schema: the tables, made from the records; `version` brings older databases to them.
owners: who drives a study, by process and host; `heartbeats`, who asks for its trials.
connecting: connections to a database, by its URL.
contents: a study read into a history, and its changes written.
cells: the types of columns, which check what they read; `codec`, values as JSON.
study_texts: the text of a study file, as far as it can be read.
reading: questions about studies and trials (`queries`, `status`, `frames`).
optuna_storage: a history in memory as an Optuna storage, for samplers.
audit: what must always be true of a database (`invariants`, `checkpoints`).
"""
