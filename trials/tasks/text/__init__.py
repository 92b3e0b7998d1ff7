"""Text classification: which class a text belongs to. `task`, `data` and `model`."""
