"""Weights & Biases: a study file from a sweep, and runs for the trials of a study."""
