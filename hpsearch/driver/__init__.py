"""The study driver: poll, decide, commit, execute; and what removes checkpoints beside it.

- `loop`: the driver
- `executor`: what a driver asks of an executor
- `journal`: its transactions, and how long it waits for a database
- `clock`: a clock that nobody can set
- `sweeping`: removes checkpoints that trials do not need any more
- `removal`: removes all checkpoints of a study that is removed
"""
