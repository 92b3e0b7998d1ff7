"""TensorBoard: event files for the trials of a study. `write` makes them."""
