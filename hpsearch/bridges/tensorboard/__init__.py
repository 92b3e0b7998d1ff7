"""TensorBoard: event files for the trials of a study."""
