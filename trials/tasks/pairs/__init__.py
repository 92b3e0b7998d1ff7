"""Sequence to sequence: a text to write for another. `task` with its data, and `model`."""
