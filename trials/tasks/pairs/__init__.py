"""Sequence to sequence: a text to write for another. `task`, `data` and `model`."""
