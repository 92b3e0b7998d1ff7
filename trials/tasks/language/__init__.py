"""Language modelling: the next token of a text. `task` with its data, and `model`."""
