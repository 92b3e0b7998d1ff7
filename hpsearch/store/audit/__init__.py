"""The checks of a database: invariants, and checkpoints that can be used."""
