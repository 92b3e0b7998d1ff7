"""The study driver: poll, decide, commit, execute; and the removal of checkpoints beside it.

- `loop`: the driver, its clock, and the protocol of executors
- `journal`: its transactions, and its patience with a database
- `sweeping`: removes checkpoints that trials do not need any more
- `removal`: removes all checkpoints of a study that is removed
"""
