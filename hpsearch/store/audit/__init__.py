"""What must hold in a database: invariants, damage, and checkpoints that can be used."""
