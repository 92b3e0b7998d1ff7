"""The study driver: poll, decide, commit, execute; and what removes checkpoints beside it.

- `loop`: the driver
- `executor`: what a driver asks of an executor
- `journal`: its transactions, and how long it waits for a database
- `clock`: a clock that nobody can set
- `background`: work on checkpoints, which does not hold the driver up
- `sweeping`: removes checkpoints that no record names any more
- `slimming`: takes from the checkpoints that are kept what their trials do not need
- `removal`: removes all checkpoints of a study that is removed
"""
