"""Language modelling: the next token of a text. `task`, `data` and `model`."""
