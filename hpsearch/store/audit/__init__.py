"""The checks of a database: invariants, damage, and checkpoints that can be used."""
